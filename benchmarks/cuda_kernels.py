"""Speeds of the CUDA kernels, forward and backward apart, beside torch's own operators and a copy: `make bench-cuda`.

python benchmarks/cuda_kernels.py                       # all operators that passed tests/cuda/contract.py
python benchmarks/cuda_kernels.py --only rolling_mean

The first table has sizes that fill a GPU. The second has every native operator on the sequences of a forecaster, where
the launch of a kernel is most of its time. Rows are written to out/cuda/ as they come, then into docs/results/cuda.md.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "cuda"))

# First: it says in words that there is no torch
from gpu import DEVICE, OUT, PAGE, REHEARSAL, Table, exit_without_gpu, gpu_name

# isort: split
import torch
from markdown import EXTREMES, environment, format_table, read_table, replace_table, sort_by, write_csv
from operators import cases_of, native_operators, on_gpu, resized, shape_of
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._pytree import tree_leaves

from torchcommodity import ops

Call = Callable[[], object]
LARGE = (
    "operator",
    "setting, float32",
    "forward, ms",
    "GB/s",
    "of copy",
    "backward, ms",
    "peer",
    "peer, ms",
    "speedup",
)
SMALL = ("operator", "shape, float32", "forward, ms", "backward, ms")
FORECASTER = (32, 1000, 10)


@dataclass(frozen=True)
class Large:
    """A call that fills the device. A peer takes the inputs and returns the call to time."""

    operator: str
    setting: str
    inputs: Callable[[], tuple[Tensor, ...]]
    function: Callable[..., Any]
    peers: dict[str, Callable[..., Call]] = field(default_factory=dict)


def panel(*shape: int) -> Callable[[], tuple[Tensor, ...]]:
    """One panel of values between 1 and 2."""
    shape = tuple(min(size, 300) for size in shape) if REHEARSAL else shape
    return lambda: (1 + torch.rand(shape, device=DEVICE),)


def median_times(calls: dict[str, Call], runs: int) -> dict[str, float]:
    """Median milliseconds on the device's clock, taken in turn after one round of warm-up."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for run in range(runs + 1):
        for name, call in calls.items():
            ms = milliseconds(call)
            times[name] += [ms] if run else []
    return {name: median(values) for name, values in times.items()}


def milliseconds(call: Call) -> float:
    if REHEARSAL:
        start = perf_counter()
        call()
        return 1e3 * (perf_counter() - start)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def copy_bandwidth(runs: int) -> float:
    """Bytes per millisecond that a copy reads and writes, for arrays larger than the caches."""
    source = torch.ones(1 << (20 if REHEARSAL else 28), device=DEVICE)
    target = torch.empty_like(source)
    return 2 * source.nbytes / median_times({"copy": lambda: target.copy_(source)}, runs)["copy"]


def torchrolling_correlation(x: Tensor) -> Call:
    import torchrolling

    left, right = torch.triu_indices(x.shape[-1], x.shape[-1], offset=1, device=x.device)  # each pair once
    return lambda: torchrolling.rolling(x[:, left], 60, dim=0).corr(x[:, right])


def torchrolling_window(statistic: str) -> Callable[..., Call]:
    def peer(x: Tensor) -> Call:
        import torchrolling

        return lambda: getattr(torchrolling.rolling(x, 60, dim=-2), statistic)()

    return peer


def torchrolling_ewm(x: Tensor) -> Call:
    import torchrolling

    return lambda: torchrolling.ewm(x, span=20, dim=-2).mean()


def compiled(function: Callable[[Tensor], Any]) -> Callable[..., Call]:
    """The same in torch's operators, as one kernel of Triton."""

    def peer(x: Tensor) -> Call:
        import triton  # noqa: F401

        fast = torch.compile(function)
        return lambda: fast(x)

    return peer


def cudnn_lstm(x: Tensor) -> Call:
    layer = nn.LSTM(x.shape[-1], 64, batch_first=True, device=x.device)
    return lambda: layer(x)


def own_lstm(x: Tensor) -> Any:
    from torchcommodity.nn import LSTM

    return LSTM(x.shape[-1], 64).to(x.device)(x)


def rows() -> list[Large]:
    wide, long = panel(4, 10000, 1024), panel(10000, 1024)
    garch = {"omega": 1e-6, "alpha": 0.08, "beta": 0.9}
    egarch = {"omega": -1.0, "alpha": 0.1, "beta": 0.9}
    size = "(4, 10000, 1024)"
    pool = {"torch, max_pool1d": lambda x: lambda: F.max_pool1d(x.transpose(-1, -2), 60, 1)}
    average = {
        "torch, avg_pool1d": lambda x: lambda: F.avg_pool1d(x.transpose(-1, -2), 60, 1),
        "torch.compile, unfold().mean": compiled(lambda x: x.unfold(-2, 60, 1).mean(-1)),
        "torchrolling, Triton": torchrolling_window("mean"),
    }
    variance = {
        "torch, unfold().var": lambda x: lambda: x.unfold(-2, 60, 1).var(-1),
        "torch.compile, unfold().var": compiled(lambda x: x.unfold(-2, 60, 1).var(-1)),
        "torchrolling, Triton": torchrolling_window("var"),
    }
    quantile = {
        "torch, unfold().quantile": lambda x: lambda: x.unfold(-2, 60, 1).quantile(0.5, -1),
        "torchrolling, Triton": torchrolling_window("median"),
    }
    mean = {"torchrolling, Triton": torchrolling_ewm}
    correlation = {"torchrolling, Triton, each pair once": torchrolling_correlation}
    return [
        Large("linear_recurrence", size, lambda: (wide()[0] / 2, *wide()), ops.linear_recurrence),
        Large("rolling_mean", f"w=60, {size}", wide, lambda x: ops.rolling_mean(x, 60), average),
        Large("rolling_var", f"w=60, {size}", wide, lambda x: ops.rolling_var(x, 60), variance),
        Large("rolling_extrema", f"w=60, {size}", wide, lambda x: ops.rolling_extrema(x, 60), pool),
        Large(
            "rolling_quantile",
            "median, w=60, (2000, 256)",
            panel(2000, 256),
            lambda x: ops.rolling_median(x, 60),
            quantile,
        ),
        Large("rolling_rank", "w=60, (10000, 1024)", long, lambda x: ops.rolling_rank(x, 60)),
        Large("ewm_mean", f"span=20, {size}", wide, lambda x: ops.ewm_mean(x, span=20), mean),
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
            correlation,
        ),
        Large("lstm", "hidden 64, (256, 250, 16)", panel(256, 250, 16), own_lstm, {"cuDNN, nn.LSTM": cudnn_lstm}),
    ]


def backward(function: Callable[..., Any], inputs: tuple[Tensor, ...]) -> Call | None:
    """The backward pass alone, or None if no output has a gradient."""
    leaves = [x.detach().requires_grad_(x.is_floating_point()) for x in inputs]
    outputs = [y for y in tree_leaves(function(*leaves)) if isinstance(y, Tensor) and y.requires_grad]
    if not outputs:
        return None
    gradients, sources = [torch.ones_like(y) for y in outputs], [x for x in leaves if x.requires_grad]
    return lambda: torch.autograd.grad(outputs, sources, gradients, retain_graph=True, allow_unused=True)


def time_large(row: Large, copy: float, runs: int) -> Iterator[tuple[object, ...]]:
    """The table rows of one call, one per peer."""
    inputs, peers = row.inputs(), dict[str, Call]()
    for name, make in row.peers.items():
        try:
            peers[name] = make(*inputs)
        except ImportError as error:
            print(f"{row.operator}: no peer, {error}", file=sys.stderr)
    with torch.no_grad():
        times = median_times({"": lambda: row.function(*inputs)} | peers, runs)
        moved = sum(x.nbytes for x in tree_leaves((inputs, row.function(*inputs))) if isinstance(x, Tensor))
    ms, gradient = times.pop(""), backward(row.function, inputs)
    gradient_ms = "" if gradient is None else f"{median_times({'': gradient}, runs)['']:.3f}"
    speed = (f"`{row.operator}`", row.setting, f"{ms:.3f}", f"{moved / ms / 1e6:.0f}", f"{moved / ms / copy:.0%}")
    for peer, time in times.items() or {"": 0.0}.items():
        yield (*speed, gradient_ms, peer, f"{time:.3f}" if peer else "", f"{time / ms:.1f}x" if peer else "")


def time_small(table: Table, op: Any, runs: int) -> None:
    """A row of the second table."""
    case = on_gpu(resized(cases_of(op)[0], *FORECASTER, torch.float32))
    with torch.no_grad():
        forward = median_times({"": case.call}, runs)[""]
    gradient = backward(case.outputs, case.inputs())
    ms = "" if gradient is None else f"{median_times({'': gradient}, runs)['']:.3f}"
    table.row(f"`{op.name}`", shape_of(case), f"{forward:.3f}", ms)


def passing() -> set[str]:
    """The operators that pass the contract on this machine's device."""
    table = OUT / "contract.md"
    lines = table.read_text().splitlines() if table.exists() else []
    return {name[1] for line in lines if line.endswith("| pass |") and (name := re.match(r"\| `(\w+)`", line))}


def write_tables(only: str | None, runs: int) -> None:
    passed, copy = passing(), copy_bandwidth(runs)
    chosen = [op for op in native_operators() if only in (None, op.name)]
    large, small = Table("speeds-large", *LARGE), Table("speeds-forecaster", *SMALL)
    for row in rows():
        if row.operator in passed and only in (None, row.operator):
            try:
                for cells in time_large(row, copy, runs):
                    large.row(*cells)
            except Exception as error:
                large.row(f"`{row.operator}`", row.setting, *[""] * 6, f"{type(error).__name__}: {str(error)[:200]}")
            torch.cuda.empty_cache()
    for op in chosen:
        if op.name not in passed:
            small.row(f"`{op.name}`", "the contract has not passed", "", "")
            continue
        try:
            time_small(small, op, runs)
        except Exception as error:
            small.row(f"`{op.name}`", f"{type(error).__name__}: {str(error)[:200]}", "", "")
    note = (
        f"GB/s counts inputs and outputs once; a copy runs at {copy / 1e6:.0f} GB/s. Medians of {runs} interleaved "
        f"runs on the device's clock. {environment(gpu_name())}"
    )
    write_section(large.path.read_text(), small.path.read_text(), note)


def write_section(large: str, small: str, note: str) -> None:
    """Both tables on the page; of the second the slowest and the fastest rows, and a file with all of them."""
    heads, rows = read_table(small)
    file = PAGE.with_name(f"{PAGE.stem}-speeds.csv")
    write_csv(file, ["operator", "shape", "forward_ms", "backward_ms"], rows)
    by_time = sort_by(rows, heads.index("forward, ms"))
    link = f"On the sequences of a forecaster ([all {len(rows)} operators]({file.name}), as CSV), the slowest:"
    slowest, fastest = (format_table(heads, part) for part in (by_time[: -EXTREMES - 1 : -1], by_time[:EXTREMES]))
    parts = [large.strip(), link, slowest, "And the fastest:", fastest]
    if failed := [row for row in rows if row not in by_time]:
        parts += ["Not timed:", format_table(heads, failed)]
    replace_table(PAGE, "speeds", "\n\n".join([*parts, note]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="Operator to time")
    parser.add_argument("--runs", type=int, default=21, help="Timed runs, at least 5")
    arguments = parser.parse_args()
    exit_without_gpu()
    write_tables(arguments.only, max(arguments.runs, 5))


if __name__ == "__main__":
    main()
