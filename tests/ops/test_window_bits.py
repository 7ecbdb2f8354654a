"""Windows and exponential averages have a shorter way where nothing is missing.

It must give the same bits, or a value that is missing later, or in another column, would change what came before.
"""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from torchcommodity import ops

CALLS: dict[str, Callable[[Tensor], Tensor]] = {
    "rolling_mean": lambda x: ops.rolling_mean(x, 20),
    "rolling_mean, fewer values": lambda x: ops.rolling_mean(x, 7, min_periods=3),
    "rolling_var": lambda x: ops.rolling_var(x, 20),
    "rolling_std": lambda x: ops.rolling_std(x, 49),
    "rolling_median": lambda x: ops.rolling_median(x, 20),
    "rolling_quantile, searched": lambda x: ops.rolling_quantile(x, 260, 0.3, min_periods=5),
    "ewm_mean": lambda x: ops.ewm_mean(x, span=20),
    "ewm_mean, not adjusted": lambda x: ops.ewm_mean(x, span=20, adjust=False, min_periods=5),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("assets", [1, 5, 133])
@pytest.mark.parametrize("name", CALLS)
def test_missing_values_change_no_bit_elsewhere(name: str, assets: int, dtype: torch.dtype) -> None:
    call, generator = CALLS[name], torch.Generator().manual_seed(0)
    x = 100 + torch.randn(300, assets, dtype=dtype, generator=generator)
    y = call(x)
    for cut in (45, 123, 299):
        later = x.clone()
        later[cut:] = torch.nan
        assert _bits(call(later)[:cut]) == _bits(y[:cut]), f"rows before {cut}"
    holed = x.clone()
    holed[50:60, 0] = holed[200, 0] = torch.nan
    beside = call(holed)
    assert _bits(beside[:, 1:]) == _bits(y[:, 1:]), "other columns"
    for n in (0, assets - 1):
        assert _bits(call(holed[:, n : n + 1])) == _bits(beside[:, n : n + 1]), "a column by itself"


def _bits(x: Tensor) -> bytes:
    return x.contiguous().numpy().tobytes()
