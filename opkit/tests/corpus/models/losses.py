"""Losses that are no scalar, no Tensor, or do not depend on the model."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.models.entries import Setup, classification, classifier, faulty, regression, with_loss

CONSTANT = ("unused_result", "constant_loss", "loss_without_output", "never_called")


@faulty("not_scalar", line='reduction="none"')
def loss_per_sample() -> Setup:
    return with_loss(lambda output, target: F.mse_loss(output, target, reduction="none"))


@faulty("not_scalar", line="(output - target).abs()")
def absolute_errors() -> Setup:
    return with_loss(lambda output, target: (output - target).abs())


@faulty("not_scalar", line=".mean(0)")
def mean_over_the_batch_only() -> Setup:
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
    batch = (torch.randn(16, 3), torch.randn(16, 2))
    return model, batch, lambda output, target: (output - target).square().mean(0)


@faulty("not_scalar")
def criterion_without_reduction() -> Setup:
    return classifier(), classification(), nn.CrossEntropyLoss(reduction="none")


@faulty("not_scalar", line="torch.stack(")
def stacked_losses() -> Setup:
    return with_loss(lambda output, target: torch.stack([F.mse_loss(output, target), output.abs().mean()]))


@faulty("not_a_tensor", "python", line=".item()")
def loss_item() -> Setup:
    return with_loss(lambda output, target: F.mse_loss(output, target).item())


@faulty("not_a_tensor", "python", line=("float(", "return"))
def loss_float() -> Setup:
    return with_loss(lambda output, target: float(F.mse_loss(output, target)))


@faulty("not_a_tensor", "python", "detach", line=".detach().numpy()")
def loss_array() -> Setup:
    return with_loss(lambda output, target: F.mse_loss(output, target).detach().numpy())


@faulty("not_a_tensor")
def loss_is_none() -> Setup:
    def loss_fn(output: Tensor, target: Tensor) -> None:
        F.mse_loss(output, target)

    return with_loss(loss_fn)


@faulty("not_a_tensor")
def loss_is_a_tuple() -> Setup:
    return with_loss(lambda output, target: (F.mse_loss(output, target), output.abs().mean()))


@faulty("not_a_tensor")
def loss_is_a_dict() -> Setup:
    return with_loss(lambda output, target: {"mse": F.mse_loss(output, target), "l1": F.l1_loss(output, target)})


@faulty("not_a_tensor")
def loss_is_a_list() -> Setup:
    return with_loss(lambda output, target: [F.mse_loss(a, b) for a, b in zip(output, target)])


@faulty("not_a_tensor", "crash")
def criterion_not_called() -> Setup:
    """`nn.MSELoss(output, target)` makes a module, or fails on its legacy arguments."""
    return with_loss(lambda output, target: nn.MSELoss(reduction="mean"))


@faulty(*CONSTANT)
def loss_of_targets_only() -> Setup:
    return with_loss(lambda output, target: target.square().mean())


@faulty(*CONSTANT)
def loss_of_a_constant() -> Setup:
    return with_loss(lambda output, target: torch.tensor(1.0))


@faulty(*CONSTANT)
def loss_of_a_constant_that_requires_grad() -> Setup:
    return with_loss(lambda output, target: torch.tensor(1.0, requires_grad=True))


@faulty(*CONSTANT)
def loss_of_the_wrong_tensor() -> Setup:
    def loss_fn(output: Tensor, target: Tensor) -> Tensor:
        baseline = torch.zeros_like(target)
        return F.mse_loss(baseline, target)

    return with_loss(loss_fn)


@faulty("detach", line="F.mse_loss(output, target).detach()")
def loss_detached_and_required_again() -> Setup:
    return with_loss(lambda output, target: F.mse_loss(output, target).detach().requires_grad_())


@faulty("data", line="F.mse_loss(output, target).data")
def loss_data() -> Setup:
    return with_loss(lambda output, target: F.mse_loss(output, target).data)


@faulty("copy", "python", line="torch.tensor([F.mse_loss")
def losses_in_a_new_tensor() -> Setup:
    return with_loss(lambda output, target: torch.tensor([F.mse_loss(a, b) for a, b in zip(output, target)]).mean())


@faulty("data", "copy", line="total.data += ")
def loss_accumulated_by_data() -> Setup:
    def loss_fn(output: Tensor, target: Tensor) -> Tensor:
        total = torch.zeros((), requires_grad=True)
        for a, b in zip(output, target):
            total.data += F.mse_loss(a, b)
        return total

    return with_loss(loss_fn)


@faulty("rounding", "integer", "zero_gradient", line=("output.round().long()",))
def loss_of_integers() -> Setup:
    def loss_fn(output: Tensor, target: Tensor) -> Tensor:
        return (output.round().long() - target.round().long()).abs().sum()

    return with_loss(loss_fn)


@faulty("integer", "rounding", line="(output > target).any()")
def loss_is_a_bool() -> Setup:
    return with_loss(lambda output, target: (output > target).any())


@faulty("complex_loss", "not_real", "not_scalar", "crash", line=("torch.fft.rfft(",))
def loss_is_complex() -> Setup:
    return with_loss(lambda output, target: torch.fft.rfft(output - target, dim=0).mean())


@faulty("unused_result", line="y = self.refine(y)")
def result_overwritten() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.coarse, self.refine, self.head = nn.Linear(3, 8), nn.Linear(8, 8), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            h = self.coarse(x).tanh()
            y = h + 1
            y = self.refine(y)
            y = h * 2
            return self.head(y)

    return Model(), regression(), F.mse_loss


@faulty("crash", line=("F.mse_loss(output.prediction",))
def loss_reads_a_field_that_is_missing() -> Setup:
    return with_loss(lambda output, target: F.mse_loss(output.prediction, target))


@faulty("crash", line=("nn.Linear(4, 8)", "self.first(x)"))
def wrong_number_of_features() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.last(self.first(x).relu())

    return Model(), regression(), F.mse_loss


@faulty("crash", line="F.cross_entropy(logits, target.float())")
def cross_entropy_of_float_classes() -> Setup:
    return classifier(), classification(), lambda logits, target: F.cross_entropy(logits, target.float())


@faulty("crash", line="F.cross_entropy(logits, target + 9)")
def class_out_of_range() -> Setup:
    return classifier(), classification(), lambda logits, target: F.cross_entropy(logits, target + 9)


@faulty("crash", line="self.layer(x.double())")
def double_into_float_layer() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 1)

        def forward(self, x: Any) -> Tensor:
            return self.layer(x.double())

    return Model(), regression(), F.mse_loss
