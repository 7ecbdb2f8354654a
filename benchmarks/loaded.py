"""Time of operators on one thread and on two, on a quiet machine and beside a busy process. Prints a Markdown table.

python benchmarks/loaded.py                                 # to standard output, in about a minute
python benchmarks/loaded.py --page docs/results/speed.md
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter

import torch
from markdown import environment, format_table, replace_table
from timing import Call

from torchcommodity import ops
from torchcommodity.ops import indicators

RUNS = 15
HEADS = [
    "call",
    "1 thread",
    "2 threads",
    "1, beside a busy process",
    "2, beside a busy process",
    "worst of 1",
    "worst of 2",
]


def calls() -> dict[str, Call]:
    """Calls of some milliseconds, with one parallel loop and with many."""
    generator = torch.Generator().manual_seed(0)
    close = 100 * (0.01 * torch.randn(2500, 1000, generator=generator)).cumsum(0).exp()
    high, low = 1.01 * close, 0.99 * close  # once: in the call, torch's threads would spin beside this library's
    returns = 0.01 * torch.randn(1000, 500, dtype=torch.double, generator=generator)
    season = close[:, :50].contiguous()
    return {
        "`garch_fit`, (1000, 500) float64": lambda: ops.garch_fit(returns),
        "`indicators.atr`, (2500, 1000)": lambda: indicators.atr(high, low, close),
        "`rolling_mean`, w=60, (2500, 1000)": lambda: ops.rolling_mean(close, 60),
        "`stl`, period 12, (2500, 50)": lambda: ops.stl(season, 12),
        "`rolling_mean`, w=20, (252, 100)": lambda: ops.rolling_mean(season[:252].repeat(1, 2), 20),
    }


@contextmanager
def busy_process() -> Iterator[None]:
    """A process that computes all the time."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            yield
        finally:
            process.kill()


def measure(call: Call) -> dict[int, list[float]]:
    """Milliseconds of the call on one thread and on two, in turn."""
    times: dict[int, list[float]] = {1: [], 2: []}
    for run in range(RUNS + 1):
        for threads, values in times.items():
            torch.set_num_threads(threads)
            start = perf_counter()
            call()
            if run:
                values.append(1e3 * (perf_counter() - start))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, help="Markdown page whose table `loaded` is replaced")
    arguments = parser.parse_args()
    rows = []
    for name, call in calls().items():
        quiet = measure(call)
        with busy_process():
            busy = measure(call)
        times = [*map(median, quiet.values()), *map(median, busy.values()), *map(max, busy.values())]
        rows.append([name, *(f"{time:.1f}" for time in times)])
    setting = (
        f"Milliseconds: medians of {RUNS} calls, taken in turn, and the slowest of them; torch {torch.__version__}"
    )
    table = f"{format_table(HEADS, rows)}\n\n{environment(setting)}"
    if arguments.page:
        replace_table(arguments.page, "loaded", table)
    else:
        print(table)


if __name__ == "__main__":
    main()
