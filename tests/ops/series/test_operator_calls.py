"""`series.operator`: a repeated call skips the checks of its settings, never those of other arguments."""

import pytest
import torch
from torch import Tensor

from torchcommodity.ops import series


@series.operator
def spread_change(high: Tensor, low: Tensor, rows: int = 1) -> Tensor:
    spread = high - low
    return spread - series.lag(spread, rows)


@pytest.fixture
def panels() -> tuple[Tensor, Tensor]:
    high = torch.arange(1.0, 13.0).reshape(6, 2) ** 2
    return high, high / 2


def test_repeated_calls_agree(panels: tuple[Tensor, Tensor]) -> None:
    high, low = panels
    expected = (high - low)[2:] - (high - low)[:-2]
    for _ in range(2):
        for y in (
            spread_change(high, low, 2),
            spread_change(high, low, rows=2),
            spread_change(high, low=low, rows=2),
            spread_change(rows=2, low=low, high=high),
        ):
            assert torch.equal(y[2:], expected)
            assert y[:2].isnan().all()
        assert torch.equal(spread_change(high.half(), low.half(), 2)[2:], expected.half())


def test_repeated_call_checks_its_arguments(panels: tuple[Tensor, Tensor]) -> None:
    high, low = panels
    spread_change(high, low, 1)
    with pytest.raises(TypeError, match="spread_change: rows must be an int; got rows=True"):
        spread_change(high, low, True)
    with pytest.raises(TypeError, match=r"spread_change: rows must be an int; got rows=1\.0"):
        spread_change(high, low, 1.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"spread_change: rows must be an int; got rows=\[1\]"):
        spread_change(high, low, [1])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="spread_change: high, low must have one shape"):
        spread_change(high, low[:-1], 1)
    with pytest.raises(TypeError, match="one dtype"):
        spread_change(high, low.double(), 1)
    with pytest.raises(TypeError, match="high must be floating-point"):
        spread_change(high.long(), low.long(), 1)
    with pytest.raises(ValueError, match=r"high must be \(..., T, N\)"):
        spread_change(high[0], low[0], 1)
    with pytest.raises(TypeError, match="spread_change: missing a required argument: 'low'"):
        spread_change(high)  # type: ignore[call-arg]
