"""Speed of the operators against other libraries: every row of rows/, as a Markdown table.

python benchmarks/run.py                       # to standard output
python benchmarks/run.py --out speed.md
python benchmarks/run.py --page docs/results/speed.md --readme README.md
python benchmarks/run.py --only garch_variance rolling_std --runs 15
"""

import argparse
import platform
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any

import torch
from markdown import processor, replace_table
from row import Row
from rows import ROWS
from timing import copy_bandwidth, median_times
from torch.utils._pytree import tree_leaves

from torchcommodity.opkit import OPERATORS, check

HEADS = ("operator", "setting, float32 unless stated", "ms", "floor", "backward", "peer", "peer, ms", "speedup")


@dataclass(frozen=True)
class Comparison:
    """Times of one row and one of its peers, in milliseconds."""

    row: Row
    ms: float
    floor: float
    backward: float | None
    peer: str
    peer_ms: float

    @property
    def speedup(self) -> float:
        return self.peer_ms / self.ms

    def cells(self) -> list[str]:
        backward = "" if self.backward is None else f"{self.backward:.2f}"
        times = [f"{self.ms:.2f}", f"{self.floor:.2f}", backward, self.peer, f"{self.peer_ms:.2f}"]
        return [f"`{self.row.title}`", self.row.setting, *times, f"{self.speedup:.1f}x"]


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


def fastest_peers(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """The rows of the README, each against its fastest peer."""
    fastest = dict[tuple[str, str], Comparison]()
    for comparison in comparisons:
        row = comparison.row
        if row.in_readme or row.goal is not None:
            other = fastest.setdefault((row.title, row.setting), comparison)
            fastest[row.title, row.setting] = min(comparison, other, key=lambda entry: entry.speedup)
    return list(fastest.values())


def markdown(comparisons: Iterable[Comparison], note: str, *, goals: bool) -> str:
    heads = [*HEADS, "goal"] if goals else list(HEADS)
    rows = [heads, ["---", "---", "---:", "---:", "---:", "---", *["---:"] * (len(heads) - 6)]]
    for comparison in comparisons:
        goal = comparison.row.goal
        rows.append(comparison.cells() + ["" if goal is None else f"{goal:.2g}x"] * goals)
    lines = [f"|{'|'.join(row)}|" if row[0] == "---" else f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([*lines, "", note])


def environment(bandwidth: float, threads: int, runs: int) -> str:
    """Date, commit, versions and machine of a run."""
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    date = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    return (
        f"{date}, commit {commit or 'unknown'}, torch {torch.__version__}, Python {platform.python_version()}, "
        f"{processor()}, {threads} threads, copy {bandwidth / 1e6:.1f} GB/s; medians of {runs} interleaved runs. "
        "The floor is the time to read the inputs and write the outputs at that copy speed."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    titles = sorted({row.title for row in ROWS})
    parser.add_argument("--only", nargs="+", choices=titles, default=titles, metavar="NAME", help="Operators to time")
    parser.add_argument("--runs", type=int, default=7, help="Timed runs, at least 5")
    parser.add_argument("--threads", type=int, default=2, help="Threads of torch")
    parser.add_argument("--out", type=Path, help="Markdown file to write")
    parser.add_argument("--page", type=Path, help="Markdown page whose table `speed` is replaced")
    parser.add_argument("--readme", type=Path, help="The same, with the rows of the README and their fastest peers")
    arguments = parser.parse_args()
    runs = max(arguments.runs, 5)
    torch.set_num_threads(arguments.threads)
    bandwidth = copy_bandwidth(runs)
    comparisons = list[Comparison]()
    for row in (row for row in ROWS if row.title in arguments.only):
        for comparison in compare(row, bandwidth, runs):
            print(*comparison.cells(), sep=" | ", file=sys.stderr, flush=True)
            comparisons.append(comparison)
    note = environment(bandwidth, arguments.threads, runs)
    table = markdown(comparisons, note, goals=True)
    if arguments.page:
        replace_table(arguments.page, "speed", table)
    if arguments.readme:
        replace_table(arguments.readme, "speed", markdown(fastest_peers(comparisons), note, goals=False))
    if arguments.out:
        arguments.out.write_text(table + "\n")
    if not (arguments.readme or arguments.page or arguments.out):
        print(table)


if __name__ == "__main__":
    main()
