"""Indicators row by row: the bits of one call, whatever the split, on panels with missing rows."""

import inspect

import pytest
import torch
from indicator_cover import COVER, NO_FORMULAS
from torch import Tensor

from torchcommodity.ops import indicators


@pytest.fixture(scope="module")
def panels() -> dict[str, Tensor]:
    """Bars (2, T, 3), volumes and periods, with missing rows."""
    generator = torch.Generator().manual_seed(0)
    close = 50 + torch.randn(2, 150, 3, generator=generator).cumsum(-2)
    spread = torch.rand(2, 150, 3, generator=generator)
    close[0, 0, 1] = close[1, 70:72, 2] = torch.nan
    volume = 1000 * (1 + torch.rand(2, 150, 3, generator=generator))
    volume[1, 90, 0] = torch.inf
    bars = {"open": close - spread + 0.5, "high": close + 1 + spread, "low": close - 1 - spread, "close": close}
    return bars | {"volume": volume, "periods": 5 + 20 * spread, "real": close, "real0": close, "real1": volume}


@pytest.mark.parametrize("name", [name for name in COVER if name not in NO_FORMULAS])
def test_any_split_gives_the_bits_of_one_call(name: str, panels: dict[str, Tensor]) -> None:
    operator = getattr(indicators, name)
    inputs = [panels[key] for key in inspect.signature(operator).parameters if key in panels]
    whole = stack(operator(*inputs))
    for sizes in ([100, 1, 1, 48], [0, 7, 33, 64, 46]):
        rows = [x.split(sizes, -2) for x in inputs]
        state, parts = operator.start(*(x[0] for x in rows)), []
        for chunk in zip(*(x[1:] for x in rows)):
            state, y = operator.update(state, *chunk)
            parts.append(stack(y))
        assert torch.equal(torch.cat(parts, -2), whole[..., sizes[0] :, :])


def stack(outputs: Tensor | tuple[Tensor, ...]) -> Tensor:
    """Outputs of an indicator in one Tensor, its NaNs replaced so that it can be compared."""
    return torch.stack(outputs if isinstance(outputs, tuple) else (outputs,)).nan_to_num(-987.0)
