"""Public functions of `ops` that are no operators of their own, on a device without float64: `python functions.py`.

Their values and gradients in float32 are compared with the CPU, which computes in float64 from the same numbers.
Prints the failures as JSON.
"""

import argparse
import inspect
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import comparison
import torch
from torch import Tensor

from torchcommodity import ops
from torchcommodity.opkit import Cases, Sample
from torchcommodity.opkit._contract.case import Case
from torchcommodity.ops import indicators

ROWS = 120  # more than the longest warm-up of an indicator at its defaults
COMPOSED: dict[str, Callable[[Tensor], Any]] = {
    "ccc_correlation": lambda x: ops.ccc_correlation(x - 100),
    "correlation_matrix": lambda x: ops.correlation_matrix(x),
    "ewm_correlation": lambda x: ops.ewm_correlation(x, span=10),
    "ewm_covariance": lambda x: ops.ewm_covariance(x, span=10),
    "ewm_std": lambda x: ops.ewm_std(x, span=10),
    "ewm_var": lambda x: ops.ewm_var(x, span=10),
    "log_returns": lambda x: ops.log_returns(x),
    "riskmetrics_variance": lambda x: ops.riskmetrics_variance(x - 100, 10),
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
ELSEWHERE = {"dcc_fit", "dcc_log_likelihood", "garch_fit", "garch_forecast"}  # estimates and sums over horizons


def bars() -> dict[str, Tensor]:
    """Panels by the names of parameters; a random walk at a price level, between its lows and highs."""
    generator = torch.Generator().manual_seed(0)
    steps, up, down, volume = torch.rand(4, ROWS, 3, generator=generator)
    close = 100 + (steps - 0.5).cumsum(-2)
    opening = close.roll(1, -2)
    panels = {"high": torch.maximum(opening, close) + up, "low": torch.minimum(opening, close) - down}
    return panels | {"open": opening, "close": close, "volume": 1 + 1000 * volume}


def cases(name: str) -> Iterator[Case]:
    panel = bars()
    if name in COMPOSED:
        yield _case(COMPOSED[name], Sample(panel["close"]))
        return
    function = getattr(indicators, name)
    required = [p.name for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    yield _case(function, Sample(*[panel.get(parameter, panel["close"]) for parameter in required]))


def _case(function: Callable[..., Any], sample: Sample) -> Case:
    op = SimpleNamespace(time=(-2, -2), num_inputs=lambda sample: len(sample.tensors))
    return Case(op, Cases(function, (sample,)), sample)


def failures(name: str, device: str) -> Iterator[str]:
    for case in cases(name):
        yield from comparison.plain_differences(case, device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name")
    parser.add_argument("--device", default="single")
    arguments = parser.parse_args()
    if arguments.device == "single":
        import single_device

        assert torch.device(arguments.device).type == single_device.NAME
    names = arguments.names or [*COMPOSED, *indicators.__all__]
    failed = {name: comparison.run_quietly(partial(failures, name, arguments.device)) for name in names}
    sys.stdout.write(json.dumps(failed))


if __name__ == "__main__":
    main()
