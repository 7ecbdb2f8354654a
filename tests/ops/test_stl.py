"""`stl` against statsmodels on WTI prices, with missing rows, and on devices without float64."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from torch_opkit import OPERATORS, Op
from torchcommodity import ops
from torchcommodity.ops._seasonal import stl as record

wti = pytest.importorskip("arch.data.wti")
pytest.importorskip("statsmodels.tsa.seasonal")

CONSTANT = {"seasonal_degree": 0, "trend_degree": 0, "low_pass_degree": 0}
JUMPS = {"seasonal_jump": 2, "trend_jump": 5, "low_pass_jump": 7}
SETTINGS: list[dict[str, Any]] = [
    {},
    {"robust": True},
    {"seasonal": 35, "trend": 61, "low_pass": 15, "inner_iter": 2, "outer_iter": 1},
    {**CONSTANT, "robust": True},
    {**JUMPS, "robust": True},
    {**CONSTANT, **JUMPS, "trend_degree": 1},
]


@pytest.fixture(scope="module")
def monthly() -> Tensor:
    prices = wti.load().iloc[:, 0].dropna()
    return torch.tensor(prices.groupby(prices.index.to_period("M")).mean().to_numpy()).unsqueeze(-1)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("period", [7, 12])
def test_stl_matches_statsmodels_on_monthly_wti(monthly: Tensor, period: int, settings: dict[str, Any]) -> None:
    for part, expected in zip(ops.stl(monthly, period, **settings), record._oracle(monthly, period, **settings)):
        torch.testing.assert_close(part, expected, rtol=1e-9, atol=1e-9)


def test_stl_matches_statsmodels_on_daily_wti() -> None:
    daily = torch.tensor(wti.load().iloc[:, 0].dropna().to_numpy())[-1000:].unsqueeze(-1)
    for part, expected in zip(ops.stl(daily, 252), record._oracle(daily, 252)):
        torch.testing.assert_close(part, expected, rtol=1e-9, atol=1e-9)


def with_gaps(x: Tensor) -> Tensor:
    x = x.clone()
    x[:10] = x[50:80] = x[3::12] = torch.nan  # a late start, a gap longer than the trend smoother, a missing phase
    return x


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_stl_with_gaps_matches_reference(monthly: Tensor, settings: dict[str, Any]) -> None:
    prices = with_gaps(monthly[:200])
    reference = run_reference(record.operator, lambda: ops.stl(prices, 12, **settings))
    for part, expected in zip(ops.stl(prices, 12, **settings), reference):
        torch.testing.assert_close(part, expected, rtol=1e-9, atol=1e-9, equal_nan=True)


def test_stl_missing_row_has_trend_and_seasonal_but_no_residual(monthly: Tensor) -> None:
    prices = with_gaps(monthly)
    parts, missing = ops.stl(prices, 12, robust=True), prices.isnan()
    assert all(part.isfinite().all() for part in (parts.trend, parts.seasonal))
    assert torch.equal(parts.residual.isnan(), missing)
    assert (parts.weights[missing] == 0).all()
    assert all(part.isnan().all() for part in ops.stl(torch.full_like(prices, torch.nan), 12)[:3])


def test_stl_components_sum_to_series(monthly: Tensor) -> None:
    parts = ops.stl(monthly, 12)
    torch.testing.assert_close(parts.trend + parts.seasonal + parts.residual, monthly)


def run_reference(operator: Op, call: Callable[[], Any]) -> Any:
    from torch_opkit._contract.case import Redirect

    with torch.no_grad(), Redirect(operator.overload, operator.reference):
        return call()


class LikeMPS(TorchDispatchMode):
    """Fails on what Apple's MPS device does not support or makes slow: float64 and synchronization."""

    SYNCS = ("_local_scalar_dense", "nonzero", "masked_select", "_to_cpu", "is_nonzero", "equal")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        assert func._opname not in self.SYNCS, f"{func} synchronizes with the device"
        for x in tree_leaves(result):
            assert not isinstance(x, Tensor) or x.dtype != torch.float64, f"{func} converts float32 to float64"
        return result


@pytest.mark.parametrize("settings", SETTINGS[:2], ids=str)
@pytest.mark.parametrize("name", ["stl", "stl_backward", "seasonal_decompose"])
def test_seasonal_reference_runs_without_float64(monthly: Tensor, name: str, settings: dict[str, Any]) -> None:
    x = with_gaps(monthly[:60]).float()
    operator = OPERATORS[f"commodity::{name}"]
    smoothers = (12, [7, 23, 13], [1, 1, 1], [1, 2, 1], 2)
    outer = settings.get("robust", 0) * 2
    calls = {
        "stl": (x, *smoothers, outer),
        "stl_backward": (x.nan_to_num(), x.nan_to_num(), x.nan_to_num(), x, *smoothers),
        "seasonal_decompose": (x, 12, bool(settings), not settings),
    }
    with LikeMPS():
        operator.reference(*calls[name])
