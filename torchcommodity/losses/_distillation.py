"""Distillation of quantile forecasts: a small model learns from a large one and from the truth."""

import torch
from torch import Tensor, nn

from torchcommodity.losses._quantile import check_quantiles, pinball
from torchcommodity.losses._reduction import Reduction, reduce


def distillation(
    quantiles: Tensor,  # (..., Q)
    teacher: Tensor,  # (..., Q)
    target: Tensor,  # (...)
    levels: Tensor,  # (Q,)
    *,
    weight: float = 0.5,
    reduction: Reduction = "mean",
) -> Tensor:  # () or, with "none", (..., Q)
    """Distillation: (1 - weight) pinball(quantiles, target) + weight |quantiles - teacher|.

    The mean of the second term over evenly spaced levels is the Wasserstein-1 distance between student and teacher, in
    the unit of the target like the pinball loss, so that the weight needs no tuning of scales. A target that is not
    known yet (the last rows of a panel) still teaches through the teacher, and where the teacher is silent (its
    warm-up) the truth teaches alone: each term is reduced over what it knows.

    Args:
        quantiles: the student's, in the unit of `target`, one per level on the last axis.
        teacher: the teacher's. No gradient reaches it; NaN takes no part.
        target: what came true. NaN takes no part.
        levels: tau, strictly between 0 and 1.
        weight: of the teacher, in [0, 1].
        reduction: "mean" or "sum" of each term over what takes part (a term without any is left out; NaN if both are),
            or "none", where an item with only one term has that term with its weight, and one with neither is NaN.

    Returns:
        the loss in the unit of `target`.

    Raises:
        ValueError: shapes do not fit, a level or the weight is outside its range, the reduction is unknown.

    References:
        Hinton, Vinyals, Dean (2015). Distilling the knowledge in a neural network. arXiv:1503.02531.

    Example:
        >>> import torch
        >>> student, teacher = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5])
        >>> levels = torch.tensor([0.1, 0.5])
        >>> distillation(student, teacher, torch.tensor(3.0), levels, weight=0.5, reduction="none")
        tensor([0.1000, 0.5000])
    """
    check_quantiles("distillation", quantiles, target, levels)
    if teacher.shape != quantiles.shape:
        shapes = f"{tuple(teacher.shape)}, {tuple(quantiles.shape)}"
        raise ValueError(f"distillation: teacher and quantiles must be of one shape; got {shapes}")
    if not 0 <= weight <= 1:
        raise ValueError(f"distillation: weight must lie in [0, 1]; got {weight}")
    heard = torch.isfinite(teacher)
    known = torch.isfinite(target).unsqueeze(-1).expand_as(quantiles)
    soft = weight * torch.where(heard, quantiles - torch.where(heard, teacher, 0.0).detach(), 0.0).abs()
    hard = (1 - weight) * torch.where(known, pinball(quantiles, target, levels, reduction="none"), 0.0)
    if reduction != "mean":
        return reduce("distillation", soft + hard, heard | known, reduction)
    terms = torch.stack([soft.sum() / heard.sum().clamp(min=1), hard.sum() / known.sum().clamp(min=1)])
    return torch.where((heard | known).any(), terms.sum(), torch.nan)


class Distillation(nn.Module):
    """Module of `distillation`, which owns its levels (Q,)."""

    levels: Tensor

    def __init__(self, levels: Tensor, *, weight: float = 0.5, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.register_buffer("levels", levels)
        self.weight = weight
        self.reduction: Reduction = reduction

    def forward(self, quantiles: Tensor, teacher: Tensor, target: Tensor) -> Tensor:
        return distillation(quantiles, teacher, target, self.levels, weight=self.weight, reduction=self.reduction)
