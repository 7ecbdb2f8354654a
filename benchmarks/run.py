"""Measure every row of rows/ and write a Markdown table.

python benchmarks/run.py                       # to standard output
python benchmarks/run.py --out speed.md
python benchmarks/run.py --readme README.md --page docs/performance.md
python benchmarks/run.py --only garch_variance --runs 15
"""

import argparse
import platform
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any

import torch
from markdown import into
from row import Row
from rows import ROWS
from timing import copy_bandwidth, in_turn
from torch.utils._pytree import tree_leaves

from torchcommodity.opkit import OPERATORS, check

HEAD = "| operator | what, float32 unless said | ours, ms | floor | backward | peer | its ms | ratio | target |"
RULE = "|---|---|---:|---:|---:|---|---:|---:|---:|"
TARGET, RATIO, SETTING = -2, -3, slice(1, 3)  # columns of a line


def measured(row: Row, bandwidth: float, runs: int) -> Iterator[str]:
    """The lines of one row; no speed where the contract of its operator does not hold."""
    name = f"| `{row.verb or row.operator}` | {row.what} |"
    if failures := contract(row.operator):
        yield f"{name} contract is red: {', '.join(failures)} | | | | | | |"
        return
    inputs = row.inputs()
    call = row.timed(*inputs) if row.timed else lambda: row.ours(*inputs)
    times = in_turn({"ours": call} | {peer: make(*inputs) for peer, make in row.peers.items()}, runs)
    back = "" if row.timed else backward(row, inputs, runs)
    floor = (size(inputs) + size(row.ours(*inputs))) / bandwidth
    ours, wanted = times.pop("ours"), "" if row.target is None else f"{row.target:.2g}x"
    for peer, time in times.items():
        yield f"{name} {ours:.2f} | {floor:.2f} | {back} | {peer} | {time:.2f} | {time / ours:.1f}x | {wanted} |"


@cache
def contract(name: str) -> list[str]:
    if not name:
        return []
    return [failure.name for failure in check(OPERATORS[f"commodity::{name}"], compiled=False).failures]


def size(result: Any) -> int:
    return sum(x.nbytes for x in tree_leaves(result) if isinstance(x, torch.Tensor))


def backward(row: Row, inputs: tuple[torch.Tensor, ...], runs: int) -> str:
    """Milliseconds of a backward pass, with gradients for all floating-point inputs."""
    leaves = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
    outputs = [y for y in tree_leaves(row.ours(*leaves)) if isinstance(y, torch.Tensor) and y.requires_grad]
    if not outputs:
        return ""
    grads, wanted = [torch.ones_like(y) for y in outputs], [x for x in leaves if x.requires_grad]
    times = in_turn({"": lambda: torch.autograd.grad(outputs, wanted, grads, retain_graph=True)}, runs)
    return f"{times['']:.2f}"


def circumstances(bandwidth: float, threads: int, runs: int) -> str:
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    date = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    return (
        f"{date}, commit {commit or 'unknown'}, torch {torch.__version__}, Python {platform.python_version()}, "
        f"{processor()}, {threads} threads, copy {bandwidth / 1e6:.1f} GB/s; medians of {runs} runs, taken in turn. "
        "The floor is what must be read and written at that copy speed."
    )


def processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def table(only: str | None, runs: int, threads: int) -> str:
    torch.set_num_threads(threads)
    bandwidth = copy_bandwidth(runs)
    lines = list[str]()
    for row in (row for row in ROWS if only in (None, row.verb or row.operator)):
        lines += measured(row, bandwidth, runs)
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join([HEAD, RULE, *lines, "", circumstances(bandwidth, threads, runs)])


def against_the_fastest(text: str) -> str:
    """Of a table, the rows that have a target, each against its fastest peer."""
    head, rule, *lines = text.splitlines()
    rows = [line.split("|") for line in lines if line.startswith("| `")]
    hardest = dict[str, list[str]]()
    for row in (row for row in rows if row[TARGET].strip()):
        other = hardest.setdefault("|".join(row[SETTING]), row)
        hardest["|".join(row[SETTING])] = min(row, other, key=lambda cells: float(cells[RATIO].strip(" x")))
    kept = [head.split("|"), rule.split("|"), *hardest.values()]
    about = lines[lines.index("") :]
    return "\n".join(["|".join(cells[:TARGET] + cells[-1:]) for cells in kept] + about)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted({row.verb or row.operator for row in ROWS}))
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--page", type=Path, help="between its <!-- speed --> and <!-- /speed -->")
    parser.add_argument("--readme", type=Path, help="the same, but only rows with a target, and their fastest peer")
    given = parser.parse_args()
    text = table(given.only, max(given.runs, 5), given.threads)
    if given.page:
        into(given.page, "speed", text)
    if given.readme:
        into(given.readme, "speed", against_the_fastest(text))
    if given.out:
        given.out.write_text(text + "\n")
    if not (given.readme or given.page or given.out):
        print(text)


if __name__ == "__main__":
    main()
