"""Run windows of many lengths on emulated CUDA kernels: `python windows.py emulated.so` prints those that differ.

The samples of the contract have short windows. A GPU adds sums of chunks in long ones.
"""

import os
import sys

os.environ["TORCHCOMMODITY_NATIVE"] = "0"

import torch
from torch import Tensor

from torch_opkit._contract.compare import assert_close
from torchcommodity import ops

assert not ops.NATIVE
LENGTHS = [1, 3, 7, 8, 15, 16, 17, 60, 127, 128, 129, 145, 200, 331, 1000]
STATISTICS = {
    "rolling_mean": [(3,)],
    "rolling_var": [(3, 1), (3, 1, True)],
    "rolling_skew_kurt": [(5, 3), (5, 4)],
    "rolling_extrema": [(3, True), (3, False)],
    "window_sum": [(False,), (True,)],
}


def panel(rows: int) -> Tensor:
    """Prices in float32: complete, with missing values and long gaps, constant, with an outlier, and none."""
    generator = torch.Generator().manual_seed(rows)
    x = 100 + torch.randn(2, rows, 6, generator=generator).cumsum(1)
    x[..., 1] = x[..., 1].masked_fill(torch.rand(2, rows, generator=generator) < 0.3, torch.nan)
    x[:, 20:170, 2] = torch.inf
    x[..., 3] = 77
    x[:, 40, 4] = 1e6
    x[..., 5] = torch.nan
    return x


def run(name: str, x: Tensor, window: int, settings: tuple[int | bool, ...]) -> list[Tensor]:
    if name == "window_sum":
        x = x.nan_to_num(0.0, 0.0)
    outputs = getattr(torch.ops.commodity, name)(x, window, *settings)
    return [*outputs] if isinstance(outputs, tuple) else [outputs]


CALLS = [
    (name, rows, window, settings)
    for name, all_settings in STATISTICS.items()
    for settings in all_settings
    for rows in (50, 330)
    for window in LENGTHS
]

if __name__ == "__main__":
    expected = [run(name, panel(rows).double(), *others) for name, rows, *others in CALLS]  # by the references
    torch.ops.load_library(sys.argv[1])
    for (name, rows, *others), outputs in zip(CALLS, expected):
        for dtype, tolerance in ((torch.double, 1e-8), (torch.float, 1e-4)):
            try:
                actual = run(name, panel(rows).to(dtype), *others)
                converted = [y.to(dtype) if y.is_floating_point() else y for y in outputs]
                assert_close(actual, converted, tolerance, "windows")
            except AssertionError as error:
                sys.stdout.write(f"{name}, {rows} rows, {others}, {dtype}: {error}\n")
