"""Speed of the operators against other libraries: every row of rows/, as a Markdown table.

python benchmarks/run.py                       # to standard output
python benchmarks/run.py --out speed.md
python benchmarks/run.py --page docs/results/speed.md --readme README.md
python benchmarks/run.py --only garch_variance rolling_std --runs 15
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import torch
from markdown import Rows, environment, format_table, replace_table
from row import Row
from rows import ROWS
from timing import copy_bandwidth, median_times
from torch.utils._pytree import tree_leaves

from torch_opkit import OPERATORS, check

README = (  # titles of the rows there: what is used most, and one operator that is slower than its peer
    "garch_variance",
    "garch_fit",
    "rolling_mean",
    "rolling_std",
    "ewm_mean",
    "rolling_correlation",
    "technical_indicators",
    "conv_bn",
)
LAYERS = ("nn.", "conv_bn", "linear_bn_relu", "lltm", "lstm")  # beginnings of the titles in a table of their own
HEADS = ("operator", "setting, float32 unless stated", "ms", "floor", "backward", "peer", "peer, ms", "speedup", "goal")


@dataclass(frozen=True)
class Comparison:
    """Times of one row and one of its peers, in milliseconds."""

    row: Row
    ms: float
    floor: float
    backward: float | None
    peer: str
    peer_ms: float

    def cells(self) -> list[str]:
        backward = "" if self.backward is None else f"{self.backward:.2f}"
        times = [f"{self.ms:.2f}", f"{self.floor:.2f}", backward, self.peer, f"{self.peer_ms:.2f}"]
        goal = "" if self.row.goal is None else f"{self.row.goal:.2g}x"
        return [f"`{self.row.title}`", self.row.setting, *times, f"{self.peer_ms / self.ms:.1f}x", goal]


def compare(row: Row, bandwidth: float, runs: int) -> Iterator[Comparison]:
    """Time a row against each of its peers; no times if its operator does not pass its contract."""
    if failures := contract_failures(row.operator):
        print(f"{row.title}: the contract fails: {', '.join(failures)}", file=sys.stderr)
        return
    inputs = row.inputs()
    call = row.timed(*inputs) if row.timed else lambda: row.function(*inputs)
    times = median_times({"": call} | {peer: make(*inputs) for peer, make in row.peers.items()}, runs)
    backward = None if row.timed else backward_time(row, inputs, runs)
    floor = (count_bytes(inputs) + count_bytes(row.function(*inputs))) / bandwidth
    ms = times.pop("")
    for peer, peer_ms in times.items():
        yield Comparison(row, ms, floor, backward, peer, peer_ms)


@cache
def contract_failures(operator: str) -> list[str]:
    if not operator:
        return []
    return [failure.name for failure in check(OPERATORS[f"commodity::{operator}"], compiled=False).failures]


def count_bytes(result: Any) -> int:
    return sum(x.nbytes for x in tree_leaves(result) if isinstance(x, torch.Tensor))


def backward_time(row: Row, inputs: tuple[torch.Tensor, ...], runs: int) -> float | None:
    """Milliseconds of a backward pass, with gradients for all floating-point inputs."""
    leaves = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
    outputs = [y for y in tree_leaves(row.function(*leaves)) if isinstance(y, torch.Tensor) and y.requires_grad]
    if not outputs:
        return None
    grads, variables = [torch.ones_like(y) for y in outputs], [x for x in leaves if x.requires_grad]
    return median_times({"": lambda: torch.autograd.grad(outputs, variables, grads, retain_graph=True)}, runs)[""]


def speedup(row: Sequence[str]) -> float:
    return float(row[6]) / float(row[2])


def readme(rows: Rows, note: str) -> str:
    """The operators of the README, each in its slowest setting, and what all settings come to."""
    settings = dict[tuple[str, str], Sequence[str]]()  # the row with the fastest peer
    for row in rows:
        key = (row[0], row[1])
        settings[key] = min(row, settings.get(key, row), key=speedup)
    ordered = sorted(settings.values(), key=speedup)
    slowest = {row[0]: row[:-1] for row in reversed(ordered)}  # without the goal
    shown = [row for title, row in slowest.items() if title.strip("`") in README]
    shown.sort(key=speedup, reverse=True)
    others = (
        f"Of [all {len(ordered)} settings](docs/results/speed.md), each beside its fastest peer, the median speedup is "
        f"{median(map(speedup, ordered)):.1f}x and the lowest {speedup(ordered[0]):.1f}x ({ordered[0][0]})."
    )
    return f"{format_table(HEADS[:-1], shown)}\n\n{others}\n{note}"


def tables(rows: Rows) -> str:
    """A table of the operators and one of the layers."""
    layers = [row for row in rows if row[0].strip("`").startswith(LAYERS)]
    parts = {"": [row for row in rows if row not in layers], "Layers, and their cells:\n\n": layers}
    return "\n\n".join(f"{title}{format_table(HEADS, part)}" for title, part in parts.items() if part)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    titles = sorted({row.title for row in ROWS})
    parser.add_argument("--only", nargs="+", choices=titles, default=titles, metavar="NAME", help="Operators to time")
    parser.add_argument("--runs", type=int, default=7, help="Timed runs, at least 5")
    parser.add_argument("--threads", type=int, default=2, help="Threads of torch")
    parser.add_argument("--out", type=Path, help="Markdown file to write")
    parser.add_argument("--page", type=Path, help="Markdown page whose table `speed` is replaced")
    parser.add_argument("--readme", type=Path, help="Markdown page whose table `speed` gets the rows of the README")
    arguments = parser.parse_args()
    runs = max(arguments.runs, 5)
    torch.set_num_threads(arguments.threads)
    bandwidth = copy_bandwidth(runs)
    comparisons = list[Comparison]()
    for row in (row for row in ROWS if row.title in arguments.only):
        for comparison in compare(row, bandwidth, runs):
            print(*comparison.cells(), sep=" | ", file=sys.stderr, flush=True)
            comparisons.append(comparison)
    note = environment(
        f"Medians of {runs} interleaved runs on {arguments.threads} threads, torch {torch.__version__}, copy "
        f"{bandwidth / 1e6:.1f} GB/s; the floor is the time to read the inputs and write the outputs at that speed"
    )
    rows = [comparison.cells() for comparison in comparisons]
    table = f"{tables(rows)}\n\n{note}"
    if arguments.page:
        replace_table(arguments.page, "speed", table)
    if arguments.readme:
        replace_table(arguments.readme, "speed", readme(rows, note))
    if arguments.out:
        arguments.out.write_text(table + "\n")
    if not (arguments.readme or arguments.page or arguments.out):
        print(table)


if __name__ == "__main__":
    main()
