"""Functions of `ops` made of several operators, and indicators, without float64: `python functions.py [name ...]`.

Values in float32 are compared with the CPU, which computes in float64 from the same prices. Prints the failures as
JSON. Without names, every function.
"""

import inspect
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import single_device
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from torchcommodity import ops
from torchcommodity.ops import indicators

ROWS = 120  # more than the longest warm-up of an indicator with its defaults
TOLERANCE = 1e-4  # relative to each value, and to their median
ANGLES = {"ht_dcphase", "ht_sine"}
COMPOSED: dict[str, Callable[[Tensor], Any]] = {
    "correlation_matrix": lambda x: ops.correlation_matrix(x),
    "log_returns": lambda x: ops.log_returns(x),
    "rolling_beta": lambda x: ops.rolling_beta(x, x.flip(-1), 10, min_periods=5),
    "rolling_covariance": lambda x: ops.rolling_covariance(x, 10, min_periods=5),
    "rolling_kurt": lambda x: ops.rolling_kurt(x, 20),
    "rolling_max": lambda x: ops.rolling_max(x, 20),
    "rolling_median": lambda x: ops.rolling_median(x, 20),
    "rolling_min": lambda x: ops.rolling_min(x, 20),
    "rolling_std": lambda x: ops.rolling_std(x, 20),
    "rolling_sum": lambda x: ops.rolling_sum(x, 20),
    "rolling_zscore": lambda x: ops.rolling_zscore(x, 20),
}


def bars() -> dict[str, Tensor]:
    """Panels by the names of parameters; a random walk at a price level, between its lows and highs."""
    generator = torch.Generator().manual_seed(0)
    steps, up, down, volume = torch.rand(4, ROWS, 3, generator=generator)
    close = 10 + (steps - 0.5).cumsum(-2) / 10
    opening = close.roll(1, -2)
    panels = {"high": torch.maximum(opening, close) + up / 10, "low": torch.minimum(opening, close) - down / 10}
    return panels | {"open": opening, "close": close, "volume": 1 + 1000 * volume}


def call(name: str, convert: Callable[[Tensor], Tensor]) -> list[Tensor]:
    panels = {key: convert(x) for key, x in bars().items()}
    if name in COMPOSED:
        return [y.cpu() for y in tree_leaves(COMPOSED[name](panels["close"]))]
    function = getattr(indicators, name)
    required = [p.name for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    return [y.cpu() for y in tree_leaves(function(*(panels.get(key, panels["close"]) for key in required)))]


def failures(name: str) -> Iterator[str]:
    for x, y in zip(call(name, lambda x: x.to(single_device.NAME)), call(name, Tensor.double), strict=True):
        size = 1 + y.double().abs().nanmedian().nan_to_num().item()
        different = ~torch.isclose(x.double(), y.double(), TOLERANCE, TOLERANCE * size, equal_nan=True)
        # a comparison that rounding turns over, and the angle of a phasor near zero
        if different.sum() > (y.numel() // 100 if name in ANGLES or not y.is_floating_point() else 0):
            largest = (x - y).abs().nan_to_num(0).max()
            yield f"{int(different.sum())} of {y.numel()} values differ, by up to {largest:.1e}"


def failures_by_name(names: list[str]) -> dict[str, list[str]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that operators run their references
        return {name: list(failures(name)) for name in names}


def main() -> None:
    names = sys.argv[1:] or [*COMPOSED, *(name for name in indicators.__all__ if name != "lookback")]
    sys.stdout.write(json.dumps(failures_by_name(names)))


if __name__ == "__main__":
    main()
