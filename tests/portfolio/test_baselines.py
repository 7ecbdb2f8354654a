"""`equal_weight`, `inverse_volatility`, `time_series_momentum` and `minimum_variance`."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from torchcommodity import portfolio
from torchcommodity.data import embedded
from torchcommodity.ops import ewm_std, log_returns

BASELINES: dict[str, Callable[[Tensor], Tensor]] = {
    "equal_weight": lambda r: portfolio.equal_weight(r.isfinite().cumsum(0) > 60),
    "inverse_volatility": lambda r: portfolio.inverse_volatility(r.isfinite().cumsum(0) > 60, ewm_std(r, halflife=20)),
    "time_series_momentum": lambda r: portfolio.time_series_momentum(
        r.isfinite().cumsum(0) > 60, ewm_std(r, halflife=20), r
    ),
    "minimum_variance": lambda r: portfolio.minimum_variance(
        r.isfinite().cumsum(0) > 60, torch.expm1(r), first_row=100
    ),
}


@pytest.fixture
def returns() -> Tensor:  # (300, 3)
    return log_returns(embedded(["WTI", "BRENT", "HENRY_HUB"]).between("2014-01-01").values.plain()[:300])


@pytest.mark.parametrize("name", BASELINES)
def test_baseline_is_causal(name: str, returns: Tensor) -> None:
    if name == "minimum_variance":
        pytest.importorskip("skfolio")
    changed = returns.clone()
    changed[201:] *= -2
    assert torch.equal(BASELINES[name](returns)[:201], BASELINES[name](changed)[:201])


def test_minimum_variance_equals_its_closed_form(returns: Tensor) -> None:
    pytest.importorskip("skfolio")
    simple = torch.expm1(returns[:, :2])
    weights = portfolio.minimum_variance(torch.ones(300, 2).bool(), simple, first_row=280, long_short=True)[299]
    sample = simple[280 + 1 - 252 : 281]
    raw = torch.linalg.solve(torch.cov(sample[sample.isfinite().all(-1)].T), torch.ones(2, dtype=torch.double))
    assert torch.allclose(weights, raw / raw.sum(), atol=1e-4)
