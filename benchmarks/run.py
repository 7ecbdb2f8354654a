"""Measure every row of rows.py and write a Markdown table.

python benchmarks/run.py                       # to standard output
python benchmarks/run.py --out speed.md
python benchmarks/run.py --readme README.md    # between <!-- speed --> and <!-- /speed -->
python benchmarks/run.py --only garch_variance --runs 15
"""

import argparse
import platform
import subprocess
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import torch
from markdown import into
from rows import ROWS, Row
from timing import copy_bandwidth, in_turn

from torchcommodity.opkit import OPERATORS, check

HEAD = "| operator | float32 panel | ours, ms | backward, ms | floor, ms | peer | peer, ms | ratio |"


def measured(row: Row, bandwidth: float, runs: int) -> Iterator[str]:
    """The lines of one operator; no speed where its contract does not hold."""
    operator = OPERATORS.get(f"commodity::{row.operator}")
    name = f"| `{row.operator}` | {row.shape} |"
    if operator is None:
        yield f"{name} not built | | | | | |"
        return
    if failures := check(operator, compiled=False).failures:
        yield f"{name} contract is red: {', '.join(failure.name for failure in failures)} | | | | | |"
        return
    panel = 1 + torch.rand(row.shape, generator=torch.Generator().manual_seed(0))
    calls = {peer: make(panel) for peer, make in row.peers.items()}
    times = in_turn({"ours": lambda: row.ours(panel)} | calls, runs)
    floor, back = row.moved * panel.numel() * 4 / bandwidth, backward(row, panel, runs)
    for peer in calls:
        ratio = times[peer] / times["ours"]
        yield f"{name} {times['ours']:.2f} | {back:.2f} | {floor:.2f} | {peer} | {times[peer]:.1f} | {ratio:.1f}x |"


def backward(row: Row, panel: torch.Tensor, runs: int) -> float:
    leaf = panel.clone().requires_grad_()
    result = row.ours(leaf)
    outputs = result if isinstance(result, tuple) else (result,)
    grads = [torch.ones_like(y) for y in outputs]
    return in_turn({"backward": lambda: torch.autograd.grad(outputs, leaf, grads, retain_graph=True)}, runs)["backward"]


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
    lines = [line for row in ROWS if only in (None, row.operator) for line in measured(row, bandwidth, runs)]
    rule = "|---|---|---:|---:|---:|---|---:|---:|"
    return "\n".join([HEAD, rule, *lines, "", circumstances(bandwidth, threads, runs)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[row.operator for row in ROWS])
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--readme", type=Path)
    given = parser.parse_args()
    text = table(given.only, max(given.runs, 5), given.threads)
    if given.readme:
        into(given.readme, "speed", text)
    if given.out:
        given.out.write_text(text + "\n")
    if not (given.readme or given.out):
        print(text)


if __name__ == "__main__":
    main()
