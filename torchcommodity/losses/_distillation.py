"""Distillation of quantile forecasts: a student trained on a teacher's quantiles and on the target."""

import torch
from torch import Tensor, nn

from torch_opkit.arguments import check_tensor, raise_invalid
from torchcommodity.losses._quantiles import check_quantiles, pinball
from torchcommodity.losses._reduction import Reduction, reduce


def distillation_loss(
    quantiles: Tensor,  # (..., Q)
    teacher: Tensor,  # (..., Q)
    target: Tensor,  # (...)
    levels: Tensor,  # (Q,)
    *,
    weight: float = 0.5,
    reduction: Reduction = "mean",
) -> Tensor:  # () or, with "none", (..., Q)
    """Distillation loss: (1 - weight) pinball(quantiles, target) + weight |quantiles - teacher|.

    The mean of the second term over evenly spaced levels is the Wasserstein-1 distance between student and teacher.
    Both terms have the unit of the target, so that the weight needs no scaling. Each term is reduced over its own valid
    elements: where the target is missing (the last rows of a panel) only the teacher's term counts, and during the
    teacher's warm-up only the pinball term.

    Args:
        quantiles: quantiles of the student, in the unit of `target`, one per level on the last axis.
        teacher: quantiles of the teacher; detached. NaN and infinity are ignored.
        target: realized value. NaN and infinity are ignored.
        levels: tau, strictly between 0 and 1.
        weight: weight of the teacher's term, in [0, 1].
        reduction: "mean" or "sum" of each term over its valid elements (a term without any is dropped; NaN if both
            are), or "none": an element with one valid term has that term times its weight, one with neither is NaN.

    Returns:
        loss in the unit of `target`.

    Raises:
        TypeError: quantiles, teacher, target or levels is not a Tensor.
        ValueError: shapes do not match, a level or the weight is out of range, or reduction is unknown.

    References:
        Hinton, Vinyals, Dean (2015). Distilling the knowledge in a neural network. arXiv:1503.02531.

    Example:
        >>> import torch
        >>> student, teacher = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5])
        >>> levels = torch.tensor([0.1, 0.5])
        >>> distillation_loss(student, teacher, torch.tensor(3.0), levels, weight=0.5, reduction="none")
        tensor([0.1000, 0.5000])
    """
    check_quantiles("distillation_loss", quantiles, target, levels)
    check_tensor("distillation_loss", teacher=teacher)
    if teacher.shape != quantiles.shape:
        rule = "teacher and quantiles must have the same shape"
        raise_invalid("distillation_loss", rule, teacher=teacher, quantiles=quantiles)
    if not 0 <= weight <= 1:
        raise_invalid("distillation_loss", "weight must be in [0, 1]", weight=weight)
    has_teacher = torch.isfinite(teacher)
    has_target = torch.isfinite(target).unsqueeze(-1).expand_as(quantiles)
    distance = torch.where(has_teacher, quantiles - torch.where(has_teacher, teacher, 0.0).detach(), 0.0).abs()
    soft = weight * distance
    hard = (1 - weight) * torch.where(has_target, pinball(quantiles, target, levels, reduction="none"), 0.0)
    if reduction != "mean":
        return reduce("distillation_loss", soft + hard, has_teacher | has_target, reduction)
    terms = torch.stack([soft.sum() / has_teacher.sum().clamp(min=1), hard.sum() / has_target.sum().clamp(min=1)])
    return torch.where((has_teacher | has_target).any(), terms.sum(), torch.nan)


class DistillationLoss(nn.Module):
    """Distillation loss as a Module; arguments, units and NaN rule are those of `distillation_loss`.

    Args:
        levels: (Q,) tau; a buffer.
        weight: weight of the teacher's term, in [0, 1].
        reduction: "mean", "sum" or "none".

    Example:
        >>> import torch
        >>> loss = DistillationLoss(torch.tensor([0.1, 0.5]))
        >>> loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5]), torch.tensor(3.0))
        tensor(0.3000)
    """

    levels: Tensor

    def __init__(self, levels: Tensor, *, weight: float = 0.5, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.register_buffer("levels", levels)
        self.weight = weight
        self.reduction: Reduction = reduction

    def forward(self, quantiles: Tensor, teacher: Tensor, target: Tensor) -> Tensor:
        """Loss of quantiles (..., Q) against the teacher's (..., Q) and a target (...)."""
        return distillation_loss(quantiles, teacher, target, self.levels, weight=self.weight, reduction=self.reduction)
