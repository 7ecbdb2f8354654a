"""CUDA kernels: build them for the GPU of this machine, check every operator on it, and print a table of speeds.

python benchmarks/cuda.py                            # to standard output
python benchmarks/cuda.py --out cuda.md              # to a file
python benchmarks/cuda.py --only rolling_correlation --no-build

The checks are those of the contract, on samples on the device: values against the reference in both dtypes, gradients,
missing values, shapes, bitwise causality. A speed is shown only for an operator that passes.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

Call = Callable[[], object]
ROOT = Path(__file__).resolve().parents[1]
HEAD = "| operator | setting, float32 unless stated | ms | GB/s | of copy | peer | peer, ms | speedup |"
RULE = "|---|---|---:|---:|---:|---|---:|---:|"
CHECK_NAMES = [
    "inputs_unchanged",
    "no_aliasing",
    "values_float64",
    "values_float32",
    "causal",
    "warmup",
    "missing_values",
    "strides",
    "short_series",
    "zero_rows",
    "one_asset",
    "empty_batch",
    "batch_axes",
    "large_level",
    "long_series",
    "gradcheck",
    "missing_values_gradient",
    "nan_output_gradient",
]


@dataclass(frozen=True)
class Large:
    """A call large enough to fill the device; its speed is the bytes of inputs and outputs over its time."""

    operator: str
    setting: str
    inputs: Callable[[], tuple[Tensor, ...]]
    function: Callable[..., Any]
    peers: dict[str, Callable[..., Call]] = field(default_factory=dict)


def panel(*shape: int, dtype: torch.dtype = torch.float32) -> Callable[[], tuple[Tensor, ...]]:
    """One panel of values between 1 and 2."""
    return lambda: (1 + torch.rand(shape, dtype=dtype, device="cuda"),)


def build() -> None:
    """Build the native library in place, for the GPU of this machine."""
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(command, cwd=ROOT, check=True, env=os.environ | {"TORCHCOMMODITY_CUDA": "1"})


def failures(name: str) -> list[str]:
    """The checks that an operator fails on the device."""
    from torchcommodity.opkit import CHECKS, OPERATORS
    from torchcommodity.opkit._contract.checks import run_check
    from torchcommodity.opkit._contract.runner import build_cases

    cases = [case.map_tensors(lambda x: x.cuda()) for case in build_cases(OPERATORS[f"commodity::{name}"])]
    results = [run_check(CHECKS[check], cases) for check in CHECK_NAMES]
    return [f"{result.name} ({result.cause})" for result in results if result.status == "fail"]


def median_times(calls: dict[str, Call], runs: int) -> dict[str, float]:
    """Median milliseconds on the device's clock, taken in turn after one round of warm-up."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for run in range(runs + 1):
        for name, call in calls.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            call()
            end.record()
            end.synchronize()
            times[name] += [begin.elapsed_time(end)] if run else []
    return {name: median(values) for name, values in times.items()}


def copy_bandwidth(runs: int) -> float:
    """Bytes per millisecond that a copy reads and writes, for arrays larger than the caches."""
    source = torch.ones(1 << 28, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.nbytes / median_times({"copy": lambda: target.copy_(source)}, runs)["copy"]


def torchrolling_correlation(x: Tensor) -> Call:
    import torchrolling

    left, right = torch.triu_indices(x.shape[-1], x.shape[-1], offset=1, device=x.device)  # each pair once
    return lambda: torchrolling.rolling(x[:, left], 60, dim=0).corr(x[:, right])


def rows() -> list[Large]:
    from torchcommodity import ops

    wide, long = panel(4, 10000, 1024), panel(10000, 1024)
    garch = {"omega": 1e-6, "alpha": 0.08, "beta": 0.9}
    egarch = {"omega": -1.0, "alpha": 0.1, "beta": 0.9}
    size = "(4, 10000, 1024)"
    return [
        Large("linear_recurrence", size, lambda: (wide()[0] / 2, *wide()), ops.linear_recurrence),
        Large("rolling_mean", f"w=60, {size}", wide, lambda x: ops.rolling_mean(x, 60)),
        Large("rolling_var", f"w=60, {size}", wide, lambda x: ops.rolling_var(x, 60)),
        Large("rolling_extrema", f"w=60, {size}", wide, lambda x: ops.rolling_extrema(x, 60)),
        Large("rolling_quantile", "median, w=60, (10000, 1024)", long, lambda x: ops.rolling_median(x, 60)),
        Large("rolling_rank", "w=60, (10000, 1024)", long, lambda x: ops.rolling_rank(x, 60)),
        Large("ewm_mean", f"span=20, {size}", wide, lambda x: ops.ewm_mean(x, span=20)),
        Large("garch_variance", size, wide, lambda x: ops.garch_variance(x - 1.5, **garch)),
        Large("egarch_variance", "(2500, 65536)", panel(2500, 65536), lambda x: ops.egarch_variance(x - 1.5, **egarch)),
        Large("technical_indicators", "(2500, 16384)", panel(2500, 16384), ops.technical_indicators),
        Large("seasonal_decompose", "(2520, 16384)", panel(2520, 16384), lambda x: ops.seasonal_decompose(x, 252)),
        Large("stl", "(2520, 1000)", panel(2520, 1000), lambda x: ops.stl(x, 252)),
        Large(
            "rolling_correlation",
            "w=60, (10000, 100)",
            panel(10000, 100),
            lambda x: ops.rolling_correlation(x, 60),
            {"torchrolling, Triton, each pair once": torchrolling_correlation},
        ),
        Large(
            "rolling_correlation_pairs",
            "w=60, (10000, 100), each pair once",
            panel(10000, 100),
            lambda x: ops.rolling_correlation(x, 60, packed=True),
            {"torchrolling, Triton, each pair once": torchrolling_correlation},
        ),
    ]


def compare(row: Large, copy: float, runs: int) -> Iterator[str]:
    """The table lines of one row, one per peer."""
    inputs = row.inputs()
    peers = {}
    for name, make in row.peers.items():
        try:
            peers[name] = make(*inputs)
        except ImportError as error:
            print(f"{row.operator}: no peer, {error}", file=sys.stderr)
    with torch.no_grad():
        times = median_times({"": lambda: row.function(*inputs)} | peers, runs)
        moved = sum(x.nbytes for x in tree_leaves((inputs, row.function(*inputs))) if isinstance(x, Tensor))
    ms = times.pop("")
    speed = f"| `{row.operator}` | {row.setting} | {ms:.3f} | {moved / ms / 1e6:.0f} | {moved / ms / copy:.0%} |"
    for peer, time in times.items() or {"": 0.0}.items():
        yield f"{speed} {peer} | {time:.3f} | {time / ms:.1f}x |" if peer else f"{speed} | | |"


def table(only: str | None, runs: int) -> str:
    from torchcommodity import ops
    from torchcommodity.opkit import OPERATORS

    assert ops.NATIVE, ops.NATIVE.reason
    names = [op.name for op in OPERATORS.values() if op.name == (only or op.name) and "cuda" in op.devices]
    failing = {name: checks for name in sorted(names) if (checks := failures(name))}
    copy = copy_bandwidth(runs)
    lines = [HEAD, RULE]
    for row in rows():
        if row.operator in names:
            lines += (
                compare(row, copy, runs) if row.operator not in failing else [f"| `{row.operator}` | contract fails |"]
            )
    lines += ["", *(f"- `{name}`: {'; '.join(checks)}" for name, checks in failing.items())]
    passing = f"{len(names) - len(failing)} of {len(names)} operators pass the contract on the device."
    return "\n".join([*lines, f"{passing} {environment(copy, runs)}"])


def environment(copy: float, runs: int) -> str:
    """Date, commit, versions and device of a run."""
    describe = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(describe, cwd=ROOT, capture_output=True, text=True).stdout
    date = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    return (
        f"{date}, commit {commit.strip() or 'unknown'}, {torch.cuda.get_device_name()}, torch {torch.__version__}, "
        f"CUDA {torch.version.cuda}, copy {copy / 1e6:.0f} GB/s; medians of {runs} interleaved runs on the "
        "device's clock. GB/s counts inputs and outputs once."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="Operator to check and time")
    parser.add_argument("--runs", type=int, default=21, help="Timed runs, at least 5")
    parser.add_argument("--no-build", action="store_true", help="Use the library as it is")
    parser.add_argument("--out", type=Path, help="Markdown file to write")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("cuda.py: torch finds no GPU")
    if not arguments.no_build:
        build()
    sys.path.insert(0, str(ROOT))  # the library just built, from any working directory
    text = table(arguments.only, max(arguments.runs, 5))
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
