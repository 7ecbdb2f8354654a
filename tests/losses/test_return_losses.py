"""What `sharpe_loss`, `sortino_loss`, `drawdown_loss` and `cvar_loss` have in common, against formulas in NumPy."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck

from torchcommodity.losses import (
    CVaRLoss,
    DrawdownLoss,
    SharpeLoss,
    SortinoLoss,
    cvar_loss,
    drawdown_loss,
    sharpe_loss,
    sortino_loss,
)

Array = np.ndarray
LOSSES: dict[str, Callable[..., Tensor]] = {
    "sharpe_loss": sharpe_loss,
    "sharpe_loss-pooled": lambda r, **options: sharpe_loss(r, pooled=True, **options),
    "sharpe_loss-biased": lambda r, **options: sharpe_loss(r, unbiased=False, **options),
    "sortino_loss": sortino_loss,
    "drawdown_loss": drawdown_loss,
    "cvar_loss": lambda r, **options: cvar_loss(r, 0.7, **options),
}
NOT_POOLED = [name for name in LOSSES if name != "sharpe_loss-pooled"]


def sharpe(r: Array, epsilon: float = 1e-4, ddof: int = 1) -> float:
    return -r.mean() / (r.std(ddof=ddof) + epsilon) if len(r) > ddof else -r[0] / epsilon


def sortino(r: Array, epsilon: float = 1e-4) -> float:
    return -r.mean() / (math.sqrt((np.minimum(r, 0) ** 2).mean()) + epsilon)


def drawdown(r: Array) -> float:
    largest, peak, wealth = 0.0, 1.0, 1.0
    for x in r:
        wealth *= 1 + x
        peak = max(peak, wealth)
        largest = max(largest, 1 - wealth / peak)
    return largest


def cvar(r: Array, level: float = 0.7) -> float:
    """Mean of the worst (1 - level) n losses, the last of them counted in part."""
    tail, total = (1 - level) * len(r), 0.0
    for loss in sorted(-r, reverse=True):
        part = min(1.0, tail)
        total, tail = total + part * loss, tail - part
    return total / ((1 - level) * len(r))


NUMPY: dict[str, Callable[[Array], float]] = {
    "sharpe_loss": sharpe,
    "sharpe_loss-biased": lambda r: sharpe(r, ddof=0),
    "sortino_loss": sortino,
    "drawdown_loss": drawdown,
    "cvar_loss": cvar,
}


@pytest.fixture
def returns() -> Tensor:
    noise = torch.randn(3, 20, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    return 0.001 + 0.02 * noise


@pytest.mark.parametrize("name", NUMPY)
@given(
    r=arrays.arrays(float, st.integers(1, 30), elements=st.floats(-0.5, 0.5).map(lambda x: round(x, 4))),
)
def test_values_equal_numpy(name: str, r: Array) -> None:
    assert LOSSES[name](torch.from_numpy(r)).item() == pytest.approx(NUMPY[name](r), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", NOT_POOLED)
def test_mean_does_not_depend_on_the_batch_size(name: str, returns: Tensor) -> None:
    small, large = returns.clone().requires_grad_(), returns.repeat(4, 1).requires_grad_()
    for batch in (small, large):
        LOSSES[name](batch).backward()
    assert torch.allclose(LOSSES[name](small), LOSSES[name](large))
    assert small.grad is not None
    assert large.grad is not None
    assert torch.allclose(small.grad, large.grad.unflatten(0, (4, 3)).sum(0))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_gradcheck(name: str, reduction: str, returns: Tensor) -> None:
    returns = returns[:2, :9].clone().requires_grad_()
    # steps of 1e-7: larger ones may move the maximum drawdown to another place
    assert gradcheck(lambda r: LOSSES[name](r, reduction=reduction), returns, eps=1e-7, atol=1e-6, rtol=1e-5)
    assert gradgradcheck(lambda r: LOSSES[name](r, reduction=reduction), returns, eps=1e-7, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("value", [0.0, 0.01, -0.01])
@pytest.mark.parametrize("rows", [1, 2, 50])
@pytest.mark.parametrize("name", LOSSES)
def test_finite_at_zero_variance(name: str, rows: int, value: float, dtype: torch.dtype) -> None:
    constant = torch.full((2, rows), value, dtype=dtype, requires_grad=True)
    loss = LOSSES[name](constant)
    (gradient,) = torch.autograd.grad(loss, constant)
    assert loss.isfinite()
    assert gradient.isfinite().all()


@pytest.mark.parametrize("name", LOSSES)
def test_missing_return_is_ignored(name: str, returns: Tensor) -> None:
    row = returns[:1]
    missing = torch.full((1, 3), torch.nan, dtype=torch.double)
    with_gap = torch.cat([row[:, :7], missing, row[:, 7:]], 1).requires_grad_()
    loss = LOSSES[name](with_gap)
    (gradient,) = torch.autograd.grad(loss, with_gap)
    assert torch.allclose(loss, LOSSES[name](row))
    assert torch.equal(gradient[0, 7:10], torch.zeros(3, dtype=torch.double))
    assert gradient.isfinite().all()
    assert LOSSES[name](torch.full((2, 4), torch.nan)).isnan()


@pytest.mark.parametrize("name", ["sharpe_loss", "sharpe_loss-pooled", "sortino_loss", "cvar_loss"])
def test_infinite_return_shows(name: str, returns: Tensor) -> None:
    returns[0, 3] = -torch.inf
    assert not LOSSES[name](returns).isfinite()


def test_return_loss_modules_equal_the_functions(returns: Tensor) -> None:
    modules: list[tuple[nn.Module, Tensor]] = [
        (SharpeLoss(pooled=True, unbiased=False), sharpe_loss(returns, pooled=True, unbiased=False)),
        (SortinoLoss(target=0.001), sortino_loss(returns, target=0.001)),
        (DrawdownLoss(reduction="sum"), drawdown_loss(returns, reduction="sum")),
        (CVaRLoss(0.8), cvar_loss(returns, 0.8)),
    ]
    for module, expected in modules:
        assert torch.equal(module(returns), expected)


def test_sharpe_loss_module_prints_its_settings() -> None:
    expected = "SharpeLoss(pooled=True, risk_free=0.0001, epsilon=1e-08, unbiased=False, reduction='mean')"
    assert repr(SharpeLoss(pooled=True, risk_free=1e-4, epsilon=1e-8, unbiased=False)) == expected


def test_return_losses_reject_bad_input() -> None:
    with pytest.raises(
        ValueError, match=r"sharpe_loss: returns must be floating point .*; got dtype=torch.float32 with returns \(\)"
    ):
        sharpe_loss(torch.tensor(1.0))
    with pytest.raises(ValueError, match=r"cvar_loss: level must be in \[0, 1\); got level=1"):
        cvar_loss(torch.zeros(3), 1)
    with pytest.raises(ValueError, match=r"sortino_loss: epsilon must be >= 0; got epsilon=-1"):
        sortino_loss(torch.zeros(3), epsilon=-1)
    with pytest.raises(ValueError, match="drawdown_loss: reduction must be"):
        drawdown_loss(torch.zeros(3), reduction="average")  # type: ignore[arg-type]


def test_sharpe_loss_pooled_is_the_ratio_of_all_returns(returns: Tensor) -> None:
    assert sharpe_loss(returns, pooled=True).item() == pytest.approx(sharpe(returns.numpy().ravel()))


def test_sharpe_loss_pooled_does_not_depend_on_repetition(returns: Tensor) -> None:
    repeated = sharpe_loss(returns.repeat(5, 1), pooled=True, unbiased=False)
    assert torch.allclose(sharpe_loss(returns, pooled=True, unbiased=False), repeated)


def test_sharpe_loss_risk_free_and_sortino_loss_target_shift_the_returns(returns: Tensor) -> None:
    assert torch.allclose(sharpe_loss(returns, risk_free=0.001), sharpe_loss(returns - 0.001))
    assert torch.allclose(sortino_loss(returns, target=0.001), sortino_loss(returns - 0.001))


def test_drawdown_loss_counts_the_start_as_a_peak() -> None:
    assert drawdown_loss(torch.tensor([-0.25, 0.1])).item() == pytest.approx(0.25)
    assert drawdown_loss(torch.tensor([0.0, -1.5])).item() == pytest.approx(1.5)


def test_cvar_loss_threshold_is_differentiable(returns: Tensor) -> None:
    threshold = torch.tensor([0.01, 0.02, 0.03], dtype=torch.double, requires_grad=True)
    inputs = (returns.requires_grad_(), threshold)
    assert gradcheck(lambda r, a: cvar_loss(r, 0.7, threshold=a), inputs, eps=1e-7, atol=1e-6, rtol=1e-5)
    assert [name for name, _ in CVaRLoss(0.9, threshold=0.02).named_parameters()] == ["threshold"]
    with pytest.raises(TypeError, match=r"^CVaRLoss: threshold must be a number; got threshold='0.02'$"):
        CVaRLoss(0.9, threshold="0.02")  # type: ignore[arg-type]


def test_cvar_loss_without_threshold_is_minimal(returns: Tensor) -> None:
    loss, grid = cvar_loss(returns[0], 0.7), torch.linspace(-0.1, 0.1, 401, dtype=torch.double)
    minimum = min(cvar_loss(returns[0], 0.7, threshold=a).item() for a in grid)
    assert loss.item() == pytest.approx(minimum, abs=1e-3)
    assert loss.item() <= minimum + 1e-15
