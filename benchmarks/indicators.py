"""Speed of `ops.indicators` against TA-Lib: every function that both have, on 1,000 columns, on 20 and on one.

python benchmarks/indicators.py                       # to standard output, in 3 to 5 minutes
python benchmarks/indicators.py --only rsi macd
python benchmarks/indicators.py --page docs/results/indicators.md --readme README.md
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import talib
import torch
from markdown import EXTREMES, Rows, environment, format_table, replace_table, sort_by, write_csv
from row import columns
from talib import abstract
from talib_calls import outputs, select_inputs
from timing import copy_bandwidth, median_times
from torch import Tensor
from torch.utils._pytree import tree_leaves

from torchcommodity.ops import indicators

ROWS = 2500
RUNS = {1000: 7, 20: 25, 1: 101}  # timed runs by number of columns: the shorter a call, the more
SECONDS = 2  # for a function on one size: slow ones have fewer runs, at least 3
NAMES = [name.lower() for name in talib.get_functions() if hasattr(indicators, name.lower())]
MOST_USED = ["sma", "ema", "wma", "dema", "tema", "kama", "macd", "rsi", "stoch", "stochrsi", "atr", "natr", "adx"]
MOST_USED += ["cci", "mfi", "obv", "bbands", "aroon", "willr", "sar"]
COLUMNS = ["function", "ms_1000", "floor_ms_1000", "talib_ms_1000", "speedup_1000", "backward_1000"]  # of the file
for size in (20, 1):
    COLUMNS += [f"us_{size}", f"talib_us_{size}", f"speedup_{size}", f"backward_{size}"]
SHOWN = {  # heads of the page, and the columns of the file below them
    "function": "function",
    "ms": "ms_1000",
    "floor": "floor_ms_1000",
    "speedup": "speedup_1000",
    "backward": "backward_1000",
    "speedup, 20 columns": "speedup_20",
    "speedup, 1 column": "speedup_1",
}


@dataclass(frozen=True)
class Timing:
    """Milliseconds of an indicator on panels of one size, and of TA-Lib on their columns."""

    forward: float
    talib: float
    backward: float | None  # None without a gradient
    floor: float

    @property
    def speedup(self) -> float:
        return self.talib / self.forward

    @property
    def backward_ratio(self) -> float | None:
        return None if self.backward is None else self.backward / self.forward


Timings = dict[int, Timing]  # by number of columns


@cache
def prices(assets: int, rows: int = ROWS) -> dict[str, Tensor]:
    """Random walks with a daily volatility of one percent, float64, by TA-Lib's names of the inputs."""
    generator = torch.Generator().manual_seed(0)

    def noise() -> Tensor:
        return torch.randn(rows, assets, dtype=torch.double, generator=generator)

    close = 100 * (0.01 * noise()).cumsum(0).exp()
    opens = close.roll(1, 0) * (1 + 0.002 * noise())
    high = torch.maximum(opens, close) * (1 + 0.005 * noise().abs())
    low = torch.minimum(opens, close) * (1 - 0.005 * noise().abs())
    periods = 2 + 28 * torch.rand(rows, assets, dtype=torch.double, generator=generator)
    volume = 1e5 * (0.5 * noise()).exp()
    return {"open": opens, "high": high, "low": low, "close": close, "volume": volume, "periods": periods.floor()}


def inputs(name: str, assets: int, dtype: torch.dtype) -> list[Tensor]:
    """The panels of an indicator, as TA-Lib takes them."""
    return [x.to(dtype) for x in select_inputs(name, prices(assets))]


def disagrees(name: str) -> bool:
    """Whether some value after the warm-up differs from TA-Lib's in float64."""
    panels, warm_up = inputs(name, 2, torch.double), abstract.Function(name).lookback
    expected = [outputs(getattr(talib, name.upper())(*x)) for x in zip(*map(columns, panels))]
    return not all(
        np.allclose(y[warm_up:, n], x[warm_up:], 1e-7, 1e-9 * float(np.nanmax(np.abs(x), initial=0)), equal_nan=True)
        for n, series in enumerate(expected)
        for y, x in zip(outputs(getattr(indicators, name)(*panels)), series, strict=True)
    )


def measure(name: str, assets: int, bandwidth: float) -> Timing:
    """Time a call, its backward pass and TA-Lib in turn."""
    function, peer = getattr(indicators, name), getattr(talib, name.upper())
    panels = inputs(name, assets, torch.float32)
    series = list(zip(*map(columns, panels)))
    calls = {"forward": lambda: function(*panels), "talib": lambda: [peer(*x) for x in series]}
    if backward := backward_call(function, panels):
        calls["backward"] = backward
    start = perf_counter()
    for call in calls.values():
        call()
    times = median_times(calls, max(3, min(RUNS[assets], int(SECONDS / (perf_counter() - start)))))
    count = sum(x.nbytes for x in tree_leaves([panels, function(*panels)]))
    return Timing(times["forward"], times["talib"], times.get("backward"), count / bandwidth)


def backward_call(function: Callable[..., Any], panels: Iterable[Tensor]) -> Callable[[], object] | None:
    """The gradients of all panels, or None if the outputs have no gradient."""
    leaves = [x.clone().requires_grad_() for x in panels]
    results = [y for y in outputs(function(*leaves)) if y.requires_grad]
    if not results:
        return None
    grads = [torch.ones_like(y) for y in results]
    return lambda: torch.autograd.grad(results, leaves, grads, retain_graph=True, allow_unused=True)


def measure_all(names: Iterable[str], bandwidth: float) -> Iterator[tuple[str, Timings]]:
    """Each indicator that agrees with TA-Lib, with its times."""
    for name in names:
        if disagrees(name):
            print(f"{name}: differs from TA-Lib, not timed", file=sys.stderr)
            continue
        timings = {assets: measure(name, assets, bandwidth) for assets in RUNS}
        print(*cells(name, timings), sep=" | ", file=sys.stderr, flush=True)
        yield name, timings


def cells(name: str, timings: Timings) -> list[str]:
    """A row of the table; ratios below one are bold."""
    row = [f"`{name}`"]
    for assets, time in timings.items():
        scale, digits = (1, 2) if assets == max(RUNS) else (1e3, 0)
        row += [f"{time.forward * scale:.{digits}f}"] + [f"{time.floor:.2f}"] * (assets == max(RUNS))
        speedup = f"{time.speedup:.2f}x" if time.speedup >= 1 else f"**{time.speedup:.2f}x**"
        ratio = time.backward_ratio
        row += [f"{time.talib * scale:.{digits}f}", speedup, "" if ratio is None else f"{ratio:.1f}"]
    return row


def summary(timings: dict[str, Timings]) -> str:
    """Worst and median ratios, of all functions and of the twenty most used."""
    heads = ["columns", "functions", "worst speedup", "median", "below 1x", "worst backward", "median"]
    rows = []
    for assets in RUNS:
        for label, names in {"all": list(timings), "the twenty most used": MOST_USED}.items():
            times = {name: timings[name][assets] for name in names if name in timings}
            speedups = {name: time.speedup for name, time in times.items()}
            ratios = {name: time.backward_ratio for name, time in times.items() if time.backward_ratio is not None}
            slow = str(sum(speedup < 1 for speedup in speedups.values()))
            cells = [f"{assets:,}", f"{label} ({len(times)})", _extreme(min, speedups), _median(speedups), slow]
            rows.append([*cells, _extreme(max, ratios), _median(ratios)])
    return format_table(heads, rows)


def _extreme(choose: Callable[..., str], ratios: dict[str, float]) -> str:
    name = choose(ratios, key=ratios.__getitem__, default="")
    return f"{ratios[name]:.2f}x (`{name}`)" if name else ""


def _median(ratios: dict[str, float]) -> str:
    return f"{median(ratios.values()):.2f}x" if ratios else ""


def sentences(timings: dict[str, Timings]) -> str:
    """What the README says."""
    wide, single = ({name: row[assets].speedup for name, row in timings.items()} for assets in (1000, 1))
    ratios = {name: row[1000].backward_ratio for name, row in timings.items()}
    passes = {name: ratio for name, ratio in ratios.items() if ratio is not None}
    return (
        f"The {len(timings)} functions of TA-Lib run at {_extreme(min, wide)} to "
        f"{_extreme(max, wide)} of its speed on (2500, 1000) float32, median {_median(wide)}; on a single column at "
        f"{_extreme(min, single)} to {_extreme(max, single)}, median {_median(single)}.\n"
        f"A backward pass takes {_median(passes)} the time of a forward pass in the median, at most "
        f"{_extreme(max, passes)} ([every row](docs/results/indicators.md))."
    )


def tables(rows: Rows, file: str) -> str:
    """The most used functions, the slowest and the fastest beside TA-Lib, and the file that has all of them."""
    by_name, by_speedup = {row[0]: row for row in rows}, sort_by(rows, COLUMNS.index("speedup_1000"))
    parts = {
        "The twenty most used": [by_name[f"`{name}`"] for name in MOST_USED if f"`{name}`" in by_name],
        "The slowest beside TA-Lib": by_speedup[:EXTREMES],
        "The fastest beside TA-Lib": by_speedup[: -EXTREMES - 1 : -1],
    }
    texts = [f"[All {len(rows)} functions, with the times on 20 columns and on one]({file}), as CSV."]
    for title, part in parts.items():
        shown = [[row[COLUMNS.index(column)] for column in SHOWN.values()] for row in part]
        texts += [f"{title}:", format_table(list(SHOWN), shown)]
    return "\n\n".join(texts)


def write_page(page: Path, rows: Rows, note: str) -> None:
    """Replace the tables of the page, and write the file of all rows beside it."""
    file = page.with_suffix(".csv")
    write_csv(file, COLUMNS, rows)
    replace_table(page, "speed", f"{tables(rows, file.name)}\n\n{note}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="NAME", help="Indicators to time")
    parser.add_argument("--threads", type=int, default=2, help="Threads of torch")
    parser.add_argument(
        "--page",
        type=Path,
        help="Markdown page whose tables `summary` and `speed` are replaced; all rows go to the CSV file beside it",
    )
    parser.add_argument("--readme", type=Path, help="Markdown page whose sentences `indicators` are replaced")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    bandwidth = copy_bandwidth(runs=7)
    timings = dict(measure_all(arguments.only, bandwidth))
    setting = f"({ROWS}, N) float32, {arguments.threads} threads, copy {bandwidth / 1e6:.1f} GB/s"
    libraries = f"torch {torch.__version__}, TA-Lib {talib.__version__}"
    note = environment(
        f"{setting}, {libraries}; medians of up to {', '.join(map(str, RUNS.values()))} interleaved runs"
    )
    rows = [cells(name, timing) for name, timing in timings.items()]
    if arguments.page:
        replace_table(arguments.page, "summary", summary(timings))
        write_page(arguments.page, rows, note)
    if arguments.readme:
        replace_table(arguments.readme, "indicators", sentences(timings))
    if not (arguments.readme or arguments.page):
        print(summary(timings), format_table(COLUMNS, rows), sentences(timings), note, sep="\n\n")


if __name__ == "__main__":
    main()
