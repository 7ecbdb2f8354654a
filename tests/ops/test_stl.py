"""What the contract cannot see: real prices against statsmodels, missing rows, and the way on other devices."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from torchcommodity import ops
from torchcommodity.opkit import OPERATORS, Op
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
def test_monthly_oil_as_statsmodels(monthly: Tensor, period: int, settings: dict[str, Any]) -> None:
    for part, expected in zip(ops.stl(monthly, period, **settings), record._oracle(monthly, period, **settings)):
        torch.testing.assert_close(part, expected, rtol=1e-9, atol=1e-9)


def test_daily_oil_over_a_year_as_statsmodels() -> None:
    daily = torch.tensor(wti.load().iloc[:, 0].dropna().to_numpy())[-1000:].unsqueeze(-1)
    for part, expected in zip(ops.stl(daily, 252), record._oracle(daily, 252)):
        torch.testing.assert_close(part, expected, rtol=1e-9, atol=1e-9)


def with_gaps(x: Tensor) -> Tensor:
    x = x.clone()
    x[:10] = x[50:80] = x[3::12] = torch.nan  # a late start, a gap longer than the trend's window, a whole phase
    return x


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_gaps_as_the_definition_has_them(monthly: Tensor, settings: dict[str, Any]) -> None:
    holed = with_gaps(monthly[:200])
    expected = by_definition(record.operator, lambda: ops.stl(holed, 12, **settings))
    for part, right in zip(ops.stl(holed, 12, **settings), expected):
        torch.testing.assert_close(part, right, rtol=1e-9, atol=1e-9, equal_nan=True)


def test_a_missing_row_has_a_trend_and_a_seasonal_but_no_residual(monthly: Tensor) -> None:
    holed = with_gaps(monthly)
    parts, missing = ops.stl(holed, 12, robust=True), holed.isnan()
    assert all(part.isfinite().all() for part in (parts.trend, parts.seasonal))
    assert torch.equal(parts.residual.isnan(), missing)
    assert (parts.weights[missing] == 0).all()
    assert all(part.isnan().all() for part in ops.stl(torch.full_like(holed, torch.nan), 12)[:3])


def test_the_parts_add_up(monthly: Tensor) -> None:
    parts = ops.stl(monthly, 12)
    torch.testing.assert_close(parts.trend + parts.seasonal + parts.residual, monthly)


def by_definition(operator: Op, call: Callable[[], Any]) -> Any:
    from torchcommodity.opkit._contract.case import Redirect

    with torch.no_grad(), Redirect(operator.overload, operator.reference):
        return call()


class LikeMPS(TorchDispatchMode):
    """Refuses what Apple's MPS device refuses or makes slow: float64, and values that Python waits for."""

    SYNCS = ("_local_scalar_dense", "nonzero", "masked_select", "_to_cpu", "is_nonzero", "equal")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        assert func._opname not in self.SYNCS, f"{func} waits for the device"
        for x in tree_leaves(result):
            assert not isinstance(x, Tensor) or x.dtype != torch.float64, f"{func} makes float64 of float32"
        return result


@pytest.mark.parametrize("settings", SETTINGS[:2], ids=str)
@pytest.mark.parametrize("name", ["stl", "stl_backward", "seasonal_decompose"])
def test_the_reference_runs_on_a_device_without_float64(monthly: Tensor, name: str, settings: dict[str, Any]) -> None:
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
