"""Missing values change no bit of earlier rows or other columns.

Rolling and exponential operators have a faster path for complete windows. Both paths must give the same bits: otherwise
a value that is missing later, or in another column, would change the past.
"""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from torchcommodity import ops

CALLS: dict[str, Callable[[Tensor], Tensor]] = {
    "rolling_mean": lambda x: ops.rolling_mean(x, 20),
    "rolling_mean-min_periods": lambda x: ops.rolling_mean(x, 7, min_periods=3),
    "rolling_var": lambda x: ops.rolling_var(x, 20),
    "rolling_std": lambda x: ops.rolling_std(x, 49),
    "rolling_median": lambda x: ops.rolling_median(x, 20),
    "rolling_quantile-long_window": lambda x: ops.rolling_quantile(x, 260, 0.3, min_periods=5),
    "ewm_mean": lambda x: ops.ewm_mean(x, span=20),
    "ewm_mean-not_adjusted": lambda x: ops.ewm_mean(x, span=20, adjust=False, min_periods=5),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("assets", [1, 5, 133])
@pytest.mark.parametrize("name", CALLS)
def test_missing_values_change_no_bit_elsewhere(name: str, assets: int, dtype: torch.dtype) -> None:
    operator = CALLS[name]
    x = 100 + torch.randn(300, assets, dtype=dtype, generator=torch.Generator().manual_seed(0))
    y = operator(x)
    for first_missing in (45, 123, 299):
        x_nan = x.clone()
        x_nan[first_missing:] = torch.nan
        assert _bits(operator(x_nan)[:first_missing]) == _bits(y[:first_missing]), f"rows before {first_missing}"
    x_nan = x.clone()
    x_nan[50:60, 0] = x_nan[200, 0] = torch.nan
    y_nan = operator(x_nan)
    assert _bits(y_nan[:, 1:]) == _bits(y[:, 1:]), "other columns"
    for n in (0, assets - 1):
        assert _bits(operator(x_nan[:, n : n + 1])) == _bits(y_nan[:, n : n + 1]), "a single column"


def _bits(x: Tensor) -> bytes:
    return x.contiguous().numpy().tobytes()
