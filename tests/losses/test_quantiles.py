"""`pinball`, `crps` and their Modules."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from torchcommodity.losses import CRPSLoss, PinballLoss, crps, pinball

LEVELS = torch.tensor([0.1, 0.5, 0.9], dtype=torch.double)
FUNCTIONS: dict[str, Callable[..., Tensor]] = {"pinball": pinball, "crps": crps}


@pytest.fixture
def quantiles() -> Tensor:
    return torch.randn(4, 5, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def target() -> Tensor:
    values = torch.randn(4, 5, dtype=torch.double, generator=torch.Generator().manual_seed(1))
    values[1, 2] = torch.nan
    return values


def test_pinball_equals_its_definition(quantiles: Tensor, target: Tensor) -> None:
    loss = pinball(quantiles, target, LEVELS, reduction="none")
    for i in range(4):
        for j in range(5):
            for k, tau in enumerate(LEVELS.tolist()):
                y, q = target[i, j].item(), quantiles[i, j, k].item()
                expected = math.nan if math.isnan(y) else (tau * (y - q) if y >= q else (1 - tau) * (q - y))
                assert loss[i, j, k].item() == pytest.approx(expected, nan_ok=True)


def test_crps_is_twice_the_mean_pinball(quantiles: Tensor, target: Tensor) -> None:
    assert torch.allclose(crps(quantiles, target, LEVELS), 2 * pinball(quantiles, target, LEVELS))


def test_crps_of_a_point_forecast_is_the_absolute_error() -> None:
    point = torch.full((3,), 2.0, dtype=torch.double)
    assert crps(point, torch.tensor(-1.0).double(), LEVELS).item() == pytest.approx(3.0)


def test_crps_of_a_normal_equals_its_closed_form() -> None:
    levels = (torch.arange(2000, dtype=torch.double) + 0.5) / 2000
    y = torch.tensor(0.7, dtype=torch.double)
    normal = torch.distributions.Normal(0.0, 1.0)
    density = normal.log_prob(y).exp()
    closed = y * (2 * normal.cdf(y) - 1) + 2 * density - 1 / math.sqrt(math.pi)
    assert crps(torch.special.ndtri(levels), y, levels).item() == pytest.approx(closed.item(), abs=1e-5)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradcheck(name: str, reduction: str, quantiles: Tensor, target: Tensor) -> None:
    known = target.nan_to_num()  # gradcheck compares values, and NaN never equals NaN
    assert torch.autograd.gradcheck(
        lambda q, y: FUNCTIONS[name](q, y, LEVELS, reduction=reduction),
        (quantiles.requires_grad_(), known.requires_grad_()),
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_missing_target_has_no_gradient(name: str, quantiles: Tensor, target: Tensor) -> None:
    quantiles[1, 2] = torch.nan
    loss = FUNCTIONS[name](quantiles.requires_grad_(), target, LEVELS)
    (gradient,) = torch.autograd.grad(loss, quantiles)
    assert loss.isfinite()
    assert gradient[1, 2].equal(torch.zeros(3, dtype=torch.double))
    assert gradient.isfinite().all()


def test_pinball_sum_leaves_out_missing_targets(quantiles: Tensor, target: Tensor) -> None:
    known = target.isfinite()
    assert torch.equal(
        pinball(quantiles, target, LEVELS, reduction="sum"),
        pinball(quantiles[known], target[known], LEVELS, reduction="none").sum(),
    )


def test_pinball_of_a_nan_forecast_is_nan(quantiles: Tensor, target: Tensor) -> None:
    quantiles[0, 0] = torch.nan
    assert pinball(quantiles, target, LEVELS).isnan()


def test_pinball_and_crps_modules_equal_the_functions(quantiles: Tensor, target: Tensor) -> None:
    assert torch.equal(PinballLoss(LEVELS)(quantiles, target), pinball(quantiles, target, LEVELS))
    total = crps(quantiles, target, LEVELS, reduction="sum")
    assert torch.equal(CRPSLoss(LEVELS, reduction="sum")(quantiles, target), total)


def test_pinball_and_crps_reject_bad_input() -> None:
    with pytest.raises(ValueError, match=r"pinball: quantiles must be .*; got quantiles \(3,\), target \(2,\), levels"):
        pinball(torch.zeros(3), torch.zeros(2), LEVELS)
    with pytest.raises(ValueError, match=r"crps: levels must lie strictly between 0 and 1; got levels=\[0.0, 0.5\]"):
        crps(torch.zeros(2), torch.zeros(()), torch.tensor([0.0, 0.5]))
    with pytest.raises(ValueError, match=r'pinball: reduction must be "mean", "sum" or "none"; got \'average\''):
        pinball(torch.zeros(3), torch.zeros(()), LEVELS, reduction="average")  # type: ignore[arg-type]
