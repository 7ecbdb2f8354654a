"""Healthy: losses, penalties, precision, and models of every size."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.models.entries import (
    Setup,
    classification,
    classifier,
    healthy,
    regression,
    with_loss,
)


def net(outputs: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, outputs))


@healthy
def one_sample() -> Setup:
    return net(), (torch.randn(1, 3), torch.randn(1, 1)), F.mse_loss


@healthy
def two_samples_with_relu() -> Setup:
    model = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
    return model, (torch.randn(2, 3), torch.randn(2, 1)), F.mse_loss


@healthy
def sum_of_squares() -> Setup:
    return net(), regression(), nn.MSELoss(reduction="sum")


@healthy
def sum_of_cross_entropies() -> Setup:
    return classifier(), classification(), lambda logits, target: F.cross_entropy(logits, target, reduction="sum")


@healthy
def loss_of_one_element() -> Setup:
    return with_loss(lambda output, target: (output - target).square().mean().reshape(1))


@healthy
def flat_output_and_flat_target() -> Setup:
    return nn.Sequential(net(), nn.Flatten(0)), (torch.randn(16, 3), torch.randn(16)), F.mse_loss


@healthy
def outer_difference_on_purpose() -> Setup:
    """Pairs of samples: (N, 1) against (1, N)."""

    def loss_fn(output: Tensor, target: Tensor) -> Tensor:
        sign = (target - target.T).sign()
        return F.softplus(-sign * (output - output.T)).mean()

    return with_loss(loss_fn)


@healthy
def log_softmax_before_cross_entropy() -> Setup:
    """Idempotent: log-softmax of log-softmax is the same."""
    return classifier(nn.LogSoftmax(-1)), classification(), F.cross_entropy


@healthy
def nll_of_log_softmax() -> Setup:
    return classifier(nn.LogSoftmax(-1)), classification(), nn.NLLLoss()


@healthy
def bce_of_sigmoid() -> Setup:
    model = nn.Sequential(net(), nn.Sigmoid())
    return model, (torch.randn(16, 3), torch.randint(2, (16, 1)).float()), nn.BCELoss()


@healthy
def probabilities_and_brier_score() -> Setup:
    model = classifier(nn.Softmax(-1))
    return model, classification(), lambda p, target: (p - F.one_hot(target, 4)).square().sum(-1).mean()


@healthy
def cross_entropy_of_soft_labels() -> Setup:
    x, y = classification()
    return classifier(), (x, F.one_hot(y, 4) * 0.9 + 0.025), F.cross_entropy


@healthy
def attention_softmax_and_cross_entropy() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.score, self.body = nn.Linear(3, 3), nn.Linear(3, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.body(x * self.score(x).softmax(-1))

    return Model(), classification(), F.cross_entropy


@healthy
def gated_logits_and_bce() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate, self.body = nn.Linear(3, 1), nn.Linear(3, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.body(x) * self.gate(x).sigmoid()

    return Model(), (torch.randn(16, 3), torch.randint(2, (16, 1)).float()), nn.BCEWithLogitsLoss()


@healthy
def pinball_loss() -> Setup:
    levels = torch.tensor([0.1, 0.5, 0.9])

    def loss_fn(output: Tensor, target: Tensor) -> Tensor:
        error = target - output
        return torch.maximum(levels * error, (levels - 1) * error).mean()

    return net(3), regression(), loss_fn


@healthy
def missing_targets_masked() -> Setup:
    x, y = regression()
    y[::3] = torch.nan

    def loss_fn(output: Tensor, target: Tensor) -> Tensor:
        valid = target.isfinite()
        return (output[valid] - target[valid]).square().mean()

    return net(), (x, y), loss_fn


@healthy
def missing_targets_replaced() -> Setup:
    x, y = regression()
    y[::3] = torch.nan

    def loss_fn(output: Tensor, target: Tensor) -> Tensor:
        error = output - target.nan_to_num()
        return torch.where(target.isnan(), 0.0, error.square()).sum() / target.isfinite().sum()

    return net(), (x, y), loss_fn


@healthy
def missing_inputs_replaced() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))

        def forward(self, x: Tensor) -> Tensor:
            return self.net(torch.cat([x.nan_to_num(), x.isnan().float()], 1))

    x, y = regression()
    x[2:5, 1] = torch.nan
    return Model(), (x, y), F.mse_loss
