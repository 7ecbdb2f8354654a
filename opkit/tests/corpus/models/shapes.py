"""Shapes that broadcast by mistake, and losses that repeat what the model has done."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.models.entries import Setup, classification, classifier, faulty, regression

TWICE = ("double_softmax", "double_sigmoid", "double_activation")
NLL = (*TWICE, "not_log_probabilities")


def flat_targets() -> tuple[Tensor, Tensor]:
    return torch.randn(16, 3), torch.randn(16)


def column_model() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))


def probabilities() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid())


def binary() -> tuple[Tensor, Tensor]:
    return torch.randn(16, 3), torch.randint(2, (16, 1)).float()


@faulty("broadcast")
def mse_of_column_and_vector() -> Setup:
    return column_model(), flat_targets(), F.mse_loss


@faulty("broadcast")
def mse_module_of_column_and_vector() -> Setup:
    return column_model(), flat_targets(), nn.MSELoss()


@faulty("broadcast")
def l1_of_column_and_vector() -> Setup:
    return column_model(), flat_targets(), nn.L1Loss()


@faulty("broadcast")
def huber_of_column_and_vector() -> Setup:
    return column_model(), flat_targets(), F.smooth_l1_loss


@faulty("broadcast", line="(output - target) ** 2")
def square_by_hand() -> Setup:
    return column_model(), flat_targets(), lambda output, target: ((output - target) ** 2).mean()


@faulty("broadcast", line="torch.abs(output.squeeze(1) - target)")
def squeezed_against_column() -> Setup:
    return column_model(), regression(), lambda output, target: torch.abs(output.squeeze(1) - target).mean()


@faulty("broadcast", line="torch.maximum(")
def pinball_of_column_and_vector() -> Setup:
    def loss_fn(output: Tensor, target: Tensor) -> Tensor:
        return torch.maximum(0.9 * (target - output), 0.1 * (output - target)).mean()

    return column_model(), flat_targets(), loss_fn


@faulty("broadcast", line="weights.squeeze(1) * returns")
def portfolio_return_of_column_and_vector() -> Setup:
    def loss_fn(weights: Tensor, returns: Tensor) -> Tensor:
        profit = weights.squeeze(1) * returns
        return -profit.mean()

    return column_model(), regression(), loss_fn


@faulty("broadcast", line="self.trend(x).squeeze(1) + self.level(x)")
def sum_of_branches_of_two_shapes() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.trend, self.level = nn.Linear(3, 1), nn.Linear(3, 1)

        def forward(self, x: Tensor) -> Tensor:
            y = self.trend(x).squeeze(1) + self.level(x)
            return y.mean(1, keepdim=True)

    return Model(), regression(), F.mse_loss


@faulty(*TWICE)
def softmax_layer_before_cross_entropy() -> Setup:
    return classifier(nn.Softmax(dim=-1)), classification(), F.cross_entropy


@faulty(*TWICE)
def softmax_layer_before_cross_entropy_module() -> Setup:
    return classifier(nn.Softmax(dim=1)), classification(), nn.CrossEntropyLoss()


@faulty(*TWICE, line=("F.softmax(self.body(x), dim=1)", "cross_entropy"))
def softmax_function_before_cross_entropy() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = classifier()

        def forward(self, x: Tensor) -> Tensor:
            return F.softmax(self.body(x), dim=1)

    return Model(), classification(), lambda p, target: F.cross_entropy(p, target)


@faulty(*TWICE, line="logits.softmax(-1)")
def softmax_in_the_loss() -> Setup:
    return classifier(), classification(), lambda logits, target: F.cross_entropy(logits.softmax(-1), target)


@faulty(*TWICE, line="F.log_softmax(logits.softmax(-1), -1)")
def log_softmax_of_softmax() -> Setup:
    def loss_fn(logits: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(F.log_softmax(logits.softmax(-1), -1), target)

    return classifier(), classification(), loss_fn


@faulty(*NLL)
def nll_of_softmax() -> Setup:
    return classifier(nn.Softmax(dim=-1)), classification(), F.nll_loss


@faulty(*NLL)
def nll_of_logits() -> Setup:
    return classifier(), classification(), nn.NLLLoss()


@faulty(*TWICE)
def sigmoid_layer_before_bce_with_logits() -> Setup:
    return probabilities(), binary(), F.binary_cross_entropy_with_logits


@faulty(*TWICE)
def sigmoid_layer_before_bce_with_logits_module() -> Setup:
    return probabilities(), binary(), nn.BCEWithLogitsLoss()


@faulty(*TWICE, line="output.sigmoid()")
def sigmoid_in_the_loss() -> Setup:
    def loss_fn(output: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(output.sigmoid(), target)

    return column_model(), binary(), loss_fn


@faulty(*TWICE, line="F.binary_cross_entropy(output.sigmoid(), target)")
def sigmoid_twice() -> Setup:
    return probabilities(), binary(), lambda output, target: F.binary_cross_entropy(output.sigmoid(), target)


@faulty("crash", line="F.mse_loss(output, target[:7])")
def lengths_differ() -> Setup:
    return column_model(), regression(), lambda output, target: F.mse_loss(output, target[:7])
