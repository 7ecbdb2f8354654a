"""`distillation_loss` and its Module."""

import pytest
import torch
from torch import Tensor

from torchcommodity.losses import DistillationLoss, distillation_loss, pinball

LEVELS = torch.tensor([0.1, 0.5, 0.9], dtype=torch.double)


@pytest.fixture
def quantiles() -> Tensor:
    return torch.randn(4, 5, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0)).requires_grad_()


@pytest.fixture
def teacher() -> Tensor:
    return torch.randn(4, 5, 3, dtype=torch.double, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def target() -> Tensor:
    values = torch.randn(4, 5, dtype=torch.double, generator=torch.Generator().manual_seed(2))
    values[1, 2] = torch.nan
    return values


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_distillation_loss_weighs_target_and_teacher(
    weight: float, quantiles: Tensor, teacher: Tensor, target: Tensor
) -> None:
    loss = distillation_loss(quantiles, teacher, target, LEVELS, weight=weight)
    distance = (quantiles - teacher).abs().mean()
    assert torch.allclose(loss, (1 - weight) * pinball(quantiles, target, LEVELS) + weight * distance)
    assert torch.equal(DistillationLoss(LEVELS, weight=weight)(quantiles, teacher, target), loss)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_distillation_loss_gradient_reaches_the_student_only(
    reduction: str, quantiles: Tensor, teacher: Tensor, target: Tensor
) -> None:
    known = target.nan_to_num()
    assert torch.autograd.gradcheck(
        lambda q: distillation_loss(q, teacher, known, LEVELS, reduction=reduction), quantiles
    )
    loss = distillation_loss(quantiles, teacher.requires_grad_(), known, LEVELS, reduction=reduction).sum()
    assert torch.autograd.grad(loss, (quantiles, teacher), allow_unused=True)[1] is None


def test_distillation_loss_without_teacher_or_target(quantiles: Tensor, target: Tensor) -> None:
    no_teacher, no_target = torch.full_like(quantiles, torch.nan), torch.full_like(target, torch.nan)
    hard = distillation_loss(quantiles, no_teacher, target, LEVELS, weight=0.3)
    assert torch.allclose(hard, 0.7 * pinball(quantiles, target, LEVELS))
    soft = distillation_loss(quantiles, quantiles.detach() + 1, no_target, LEVELS, weight=0.3)
    assert soft.item() == pytest.approx(0.3)
    for loss in (hard, soft):
        assert torch.autograd.grad(loss, quantiles)[0].isfinite().all()
    assert distillation_loss(quantiles, no_teacher, no_target, LEVELS).isnan()


def test_distillation_loss_rejects_bad_input(quantiles: Tensor, teacher: Tensor, target: Tensor) -> None:
    with pytest.raises(ValueError, match=r"distillation_loss: weight must be in \[0, 1\]; got weight=2"):
        distillation_loss(quantiles, teacher, target, LEVELS, weight=2)
    with pytest.raises(ValueError, match="distillation_loss: teacher and quantiles must have the same shape"):
        distillation_loss(quantiles, teacher[0], target, LEVELS)
