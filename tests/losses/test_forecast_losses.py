"""Losses against their definitions, their gradients, and the rule for missing targets."""

import math

import pytest
import torch
from torch import Tensor

from torchcommodity.losses import (
    CRPS,
    QLIKE,
    Distillation,
    Pinball,
    ScaledMSE,
    crps,
    distillation,
    pinball,
    qlike,
    scaled_mse,
)

LEVELS = torch.tensor([0.1, 0.5, 0.9], dtype=torch.double)


@pytest.fixture
def random() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def forecast(random: torch.Generator) -> tuple[Tensor, Tensor]:
    quantiles = torch.randn(4, 5, 3, dtype=torch.double, generator=random)
    target = torch.randn(4, 5, dtype=torch.double, generator=random)
    target[1, 2] = torch.nan
    return quantiles, target


def test_pinball_is_its_definition(random: torch.Generator) -> None:
    quantiles, target = forecast(random)
    found = pinball(quantiles, target, LEVELS, reduction="none")
    for i in range(4):
        for j in range(5):
            for k, tau in enumerate(LEVELS.tolist()):
                y, q = target[i, j].item(), quantiles[i, j, k].item()
                expected = math.nan if math.isnan(y) else (tau * (y - q) if y >= q else (1 - tau) * (q - y))
                assert found[i, j, k].item() == pytest.approx(expected, nan_ok=True)


def test_crps_is_twice_the_mean_pinball_and_the_absolute_error_of_a_point(random: torch.Generator) -> None:
    quantiles, target = forecast(random)
    assert torch.allclose(crps(quantiles, target, LEVELS), 2 * pinball(quantiles, target, LEVELS))
    point = torch.full((3,), 2.0, dtype=torch.double)
    assert crps(point, torch.tensor(-1.0).double(), LEVELS).item() == pytest.approx(3.0)


def test_crps_of_a_normal_is_its_closed_form() -> None:
    levels = (torch.arange(2000, dtype=torch.double) + 0.5) / 2000
    y = torch.tensor(0.7, dtype=torch.double)
    normal = torch.distributions.Normal(0.0, 1.0)
    density = normal.log_prob(y).exp()
    closed = y * (2 * normal.cdf(y) - 1) + 2 * density - 1 / math.sqrt(math.pi)
    assert crps(torch.special.ndtri(levels), y, levels).item() == pytest.approx(closed.item(), abs=1e-5)


def test_qlike_is_least_at_the_expected_value() -> None:
    realized = torch.tensor([0.5, 1.5, 4.0], dtype=torch.double)
    mean = realized.mean()
    losses = [qlike((mean * f).expand(3), realized).item() for f in (0.5, 0.9, 1.0, 1.1, 2.0)]
    assert min(losses) == losses[2]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("loss", ["pinball", "crps", "qlike"])
def test_gradients(loss: str, reduction: str, random: torch.Generator) -> None:
    quantiles, target = forecast(random)
    known = target.nan_to_num()  # gradcheck compares values, which NaN never equals
    if loss == "qlike":
        variance = quantiles.exp()[..., 0].requires_grad_()
        assert torch.autograd.gradcheck(lambda h: qlike(h, known.square(), reduction=reduction), variance)
        return
    function = {"pinball": pinball, "crps": crps}[loss]
    assert torch.autograd.gradcheck(
        lambda q, y: function(q, y, LEVELS, reduction=reduction), (quantiles.requires_grad_(), known.requires_grad_())
    )


def test_a_missing_target_takes_no_part(random: torch.Generator) -> None:
    quantiles, target = forecast(random)
    quantiles[1, 2] = torch.nan
    quantiles.requires_grad_()
    for loss in (pinball(quantiles, target, LEVELS), crps(quantiles, target, LEVELS)):
        (gradient,) = torch.autograd.grad(loss, quantiles)
        assert loss.isfinite()
        assert gradient[1, 2].equal(torch.zeros(3, dtype=torch.double))
        assert gradient.isfinite().all()
    known = target.isfinite()
    assert torch.equal(
        pinball(quantiles, target, LEVELS, reduction="sum"),
        pinball(quantiles[known], target[known], LEVELS, reduction="none").sum(),
    )
    variance = torch.tensor([1.0, torch.nan], requires_grad=True)
    qlike(variance, torch.tensor([1.0, torch.nan])).backward()
    assert variance.grad is not None
    assert variance.grad.tolist() == [0.0, 0.0]


def test_a_missing_forecast_shows(random: torch.Generator) -> None:
    quantiles, target = forecast(random)
    quantiles[0, 0] = torch.nan
    assert pinball(quantiles, target, LEVELS).isnan()


def test_modules_are_the_functions(random: torch.Generator) -> None:
    quantiles, target = forecast(random)
    assert torch.equal(Pinball(LEVELS)(quantiles, target), pinball(quantiles, target, LEVELS))
    assert torch.equal(
        CRPS(LEVELS, reduction="sum")(quantiles, target), crps(quantiles, target, LEVELS, reduction="sum")
    )
    assert torch.equal(QLIKE()(quantiles.exp(), quantiles.square()), qlike(quantiles.exp(), quantiles.square()))


def test_bad_input_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match=r"pinball: quantiles must be .*; got \(3,\), \(2,\), \(3,\)"):
        pinball(torch.zeros(3), torch.zeros(2), LEVELS)
    with pytest.raises(ValueError, match=r"levels must lie strictly between 0 and 1; got \[0.0, 0.5\]"):
        crps(torch.zeros(2), torch.zeros(()), torch.tensor([0.0, 0.5]))
    with pytest.raises(ValueError, match=r"qlike: variance and realized must be of one shape; got \(2,\), \(3,\)"):
        qlike(torch.ones(2), torch.ones(3))
    with pytest.raises(ValueError, match=r"reduction must be .*; got 'average'"):
        qlike(torch.ones(2), torch.ones(2), reduction="average")  # type: ignore[arg-type]


def test_scaled_mse_is_its_definition_and_gives_the_scale_no_gradient(random: torch.Generator) -> None:
    quantiles, target = forecast(random)
    point, scale = quantiles[..., 0].requires_grad_(), quantiles[..., 1].detach().abs().requires_grad_()
    found = scaled_mse(point, target, scale, eps=0.1, reduction="none")
    assert torch.allclose(found, ((target - point) / (scale + 0.1)) ** 2, equal_nan=True)
    loss = scaled_mse(point, target, scale)
    assert torch.allclose(loss, scaled_mse(point, target, scale, reduction="none").nanmean())
    assert torch.autograd.grad(loss, (point, scale), allow_unused=True)[1] is None
    known = target.nan_to_num()
    assert torch.autograd.gradcheck(lambda f, y: scaled_mse(f, y, scale), (point, known.requires_grad_()))
    still = scaled_mse(torch.zeros(3, requires_grad=True), torch.zeros(3), torch.zeros(3))
    assert still.item() == 0
    assert torch.equal(ScaledMSE(eps=0.1)(point, target, scale), scaled_mse(point, target, scale, eps=0.1))


def test_distillation_is_the_truth_and_the_teacher(random: torch.Generator) -> None:
    quantiles, target = forecast(random)
    teacher = torch.randn(quantiles.shape, dtype=torch.double, generator=random)
    for weight in (0.0, 0.3, 1.0):
        found = distillation(quantiles, teacher, target, LEVELS, weight=weight)
        apart = (quantiles - teacher).abs().mean()
        assert torch.allclose(found, (1 - weight) * pinball(quantiles, target, LEVELS) + weight * apart)
    assert torch.equal(
        Distillation(LEVELS, weight=0.3)(quantiles, teacher, target),
        distillation(quantiles, teacher, target, LEVELS, weight=0.3),
    )


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_distillation_gradients(reduction: str, random: torch.Generator) -> None:
    quantiles, target = forecast(random)
    teacher = torch.randn(quantiles.shape, dtype=torch.double, generator=random).requires_grad_()
    known = target.nan_to_num()
    assert torch.autograd.gradcheck(
        lambda q: distillation(q, teacher, known, LEVELS, reduction=reduction), quantiles.requires_grad_()
    )
    loss = distillation(quantiles, teacher, known, LEVELS, reduction=reduction).sum()
    assert torch.autograd.grad(loss, (quantiles, teacher), allow_unused=True)[1] is None


def test_teacher_and_truth_may_each_be_silent(random: torch.Generator) -> None:
    quantiles, target = forecast(random)
    quantiles.requires_grad_()
    teacher = torch.full_like(quantiles, torch.nan)
    alone = distillation(quantiles, teacher, target, LEVELS, weight=0.3)
    assert torch.allclose(alone, 0.7 * pinball(quantiles, target, LEVELS))
    unknown = torch.full_like(target, torch.nan)
    taught = distillation(quantiles, quantiles.detach() + 1, unknown, LEVELS, weight=0.3)
    assert taught.item() == pytest.approx(0.3)
    for loss in (alone, taught):
        assert torch.autograd.grad(loss, quantiles)[0].isfinite().all()
    assert distillation(quantiles, teacher, unknown, LEVELS).isnan()
    with pytest.raises(ValueError, match=r"distillation: weight must lie in \[0, 1\]; got 2"):
        distillation(quantiles, teacher, target, LEVELS, weight=2)
    with pytest.raises(ValueError, match="teacher and quantiles must be of one shape"):
        distillation(quantiles, teacher[0], target, LEVELS)
