"""`energy_score` and `variogram_score`."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from torchcommodity.losses import crps, energy_score, variogram_score

SCORES: dict[str, Callable[..., Tensor]] = {"energy_score": energy_score, "variogram_score": variogram_score}


@pytest.fixture
def samples() -> Tensor:
    return torch.randn(3, 6, 4, dtype=torch.double, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def target() -> Tensor:
    values = torch.randn(3, 4, dtype=torch.double, generator=torch.Generator().manual_seed(1))
    values[1, 2] = torch.nan
    return values


def energy_loop(samples: Tensor, y: Tensor) -> float:
    draws = samples.unbind(0)
    to_target = sum(float((x - y).norm()) for x in draws) / len(draws)
    return to_target - sum(float((a - b).norm()) for a in draws for b in draws) / (2 * len(draws) ** 2)


def variogram_loop(samples: Tensor, y: Tensor) -> float:
    total, D = 0.0, len(y)
    for i in range(D):
        for j in range(D):
            expected = sum(abs(float(x[i] - x[j])) ** 0.5 for x in samples) / len(samples)
            total += (abs(float(y[i] - y[j])) ** 0.5 - expected) ** 2
    return total


@pytest.mark.parametrize(("name", "loop"), [("energy_score", energy_loop), ("variogram_score", variogram_loop)])
def test_multivariate_score_equals_its_loop(
    name: str, loop: Callable[[Tensor, Tensor], float], samples: Tensor, target: Tensor
) -> None:
    score = SCORES[name](samples, target, reduction="none")
    assert score.isnan().tolist() == [False, True, False]
    for i in (0, 2):
        assert score[i].item() == pytest.approx(loop(samples[i], target[i]))
    assert SCORES[name](samples, target).item() == pytest.approx(score.nanmean().item())
    assert SCORES[name](samples, target, reduction="sum").item() == pytest.approx(score.nansum().item())


def test_energy_score_of_one_component_is_the_crps() -> None:
    levels = (torch.arange(400, dtype=torch.double) + 0.5) / 400
    quantiles, y = torch.special.ndtri(levels), torch.tensor(0.7).double()
    assert energy_score(quantiles[:, None], y[None]).item() == pytest.approx(
        crps(quantiles, y, levels).item(), abs=1e-3
    )


def test_variogram_score_prefers_the_true_dependence() -> None:
    random = torch.Generator().manual_seed(0)
    common, own = torch.randn(500, 1, generator=random), torch.randn(500, 3, generator=random)
    dependent = 0.9 * common + 0.44 * own
    independent = torch.stack([column[torch.randperm(500, generator=random)] for column in dependent.T], 1)
    targets = 0.9 * torch.randn(200, 1, generator=random) + 0.44 * torch.randn(200, 3, generator=random)
    scores = [variogram_score(x.expand(200, -1, -1), targets).item() for x in (dependent, independent)]
    assert scores[0] < 0.9 * scores[1]


def test_variogram_score_weights_and_order(samples: Tensor, target: Tensor) -> None:
    assert variogram_score(samples, target, weights=torch.zeros(4, 4)).item() == 0
    doubled = variogram_score(samples, target, weights=torch.full((4, 4), 2.0))
    assert torch.allclose(doubled, 2 * variogram_score(samples, target))
    assert torch.allclose(
        variogram_score(9 * samples, 9 * target, order=1.0), 81 * variogram_score(samples, target, order=1.0)
    )


@pytest.mark.parametrize("name", SCORES)
def test_multivariate_score_gradcheck(name: str, samples: Tensor, target: Tensor) -> None:
    y = target.nan_to_num().requires_grad_()
    assert torch.autograd.gradcheck(SCORES[name], (samples.requires_grad_(), y))


@pytest.mark.parametrize("name", SCORES)
def test_multivariate_score_of_a_missing_target_has_no_gradient(name: str, samples: Tensor, target: Tensor) -> None:
    SCORES[name](samples.requires_grad_(), target).backward()
    assert samples.grad is not None
    assert samples.grad.isfinite().all()
    assert samples.grad[1].eq(0).all()
    assert samples.grad[0].ne(0).any()


@pytest.mark.parametrize("name", SCORES)
def test_multivariate_score_rejects_bad_shapes(name: str, samples: Tensor, target: Tensor) -> None:
    with pytest.raises(ValueError, match=rf"{name}: samples must be \(..., P, D\) for target \(..., D\)"):
        SCORES[name](samples, target[:, :3])
    with pytest.raises(ValueError, match=f"{name}: samples must have at least one draw"):
        SCORES[name](samples[:, :0], target)
    with pytest.raises(ValueError, match=f"{name}: reduction must be"):
        SCORES[name](samples, target, reduction="median")


def test_variogram_score_rejects_bad_order_and_weights(samples: Tensor, target: Tensor) -> None:
    with pytest.raises(ValueError, match="variogram_score: order must be > 0"):
        variogram_score(samples, target, order=0.0)
    with pytest.raises(ValueError, match=r"variogram_score: weights must be \(D, D\)"):
        variogram_score(samples, target, weights=torch.ones(4))
