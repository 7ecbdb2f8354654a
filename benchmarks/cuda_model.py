"""A model of the time of every CUDA kernel, and what bounds it: no GPU is needed.

python benchmarks/cuda_model.py --page docs/results/cuda.md

The sources give the facts. Compiled for the CPU to count, the kernels say how many threads a launch has and which
memory they access (cuda_trace.py); compiled for a GPU, how many warps fit into a multiprocessor, and what one pass of
their main loop takes (cuda_resources.py, cuda_sass.py). A launch takes as long as the slowest of

- memory: the sectors of 32 bytes that differ, at the speed of a copy;
- cache: the sectors of all accesses, at the speed of the second-level cache;
- instructions: those of all warps, on the busiest unit of all multiprocessors;
- latency: one thread's passes, one after another, each as long as its slowest load, for as many rounds as the warps
  need to fit; between barriers, those of the slowest thread; the barriers; and the hand-over between blocks that wait
  for one another.

A call takes the host's time for the first kernel and for each operator of torch that checks values, then the kernels,
or the host's time for them where it launches them more slowly than they run. Operators of torch that a kernel's source
calls, such as matrix products, are not counted.

The floor is a copy of inputs and outputs. Speeds that a GPU has shown (docs/results/cuda.md) stand beside the model.
"""

import argparse
import csv
import math
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "cuda"))

import cuda_kernels
import torch
from cuda_resources import Resources, compile_kernels
from cuda_sass import Loop, disassemble, main_loop
from cuda_trace import Launch, Tracer, compile_traced, demangle
from cuda_unity import KERNELS
from markdown import LONG, commit, date, format_table, read_table, replace_table, write_csv
from operators import cases_of, is_linear, shape_of
from torch import Tensor

from torch_opkit import OPERATORS
from torch_opkit._contract.case import Case, SkipCheck
from torch_opkit._contract.resize import resize

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "results" / "cuda.md"
LARGE, MATRICES, FORECASTER = (4, 10000, 1024), (4, 10000, 40), (32, 1000, 10)
REGISTERED = re.compile(r"^COMMODITY_(?:CUDA|KERNEL)\(\s*(\w+)", re.MULTILINE)
# Of the large size, as in the table of speeds
WINDOWS = {"window": 60, "short": 10, "long": 30, "rsi": 14, "band": 20}
HEADS = ("operator", "inputs", "launches", "of torch", "threads", "warps fit", "fetched / used", "traffic / floor")
HEADS += ("accesses", "floor, ms", "model, ms", "of floor", "bound by", "measured, ms")
FIELDS = ["operator", "inputs", "launches", "torch", "threads", "warps", "fetched", "traffic", "accesses"]
FIELDS += ["floor_ms", "model_ms", "of_floor", "bound", "measured_ms"]


@dataclass(frozen=True)
class Gpu:
    """An H200: of an H100, memory alone differs."""

    copy: float  # bytes per second that a copy reads and writes, as measured
    call: float  # seconds of the host for the smallest call, as measured
    host: float = 18e-6  # and for each kernel more, ours or torch's: 494 in the call of DCC that took 9.6 ms
    multiprocessors: int = 132
    clock: float = 1.83e9
    warps: int = 64  # of a multiprocessor
    shared: int = 227 << 10
    cache: float = 5.5e12  # bytes per second of the second-level cache, and how many it holds
    cache_bytes: int = 50 << 20
    # Cycles until a load is there, from memory and both caches: Luo et al. (2024), see cuda_sass.py
    memory_cycles: int = 479
    second_cycles: int = 262
    first_cycles: int = 41
    barrier: int = 30  # cycles
    launch: float = 2e-6  # seconds between two kernels of a call, on the device
    hand_over: float = 1.5e-6  # seconds from block to block, through the second-level cache and back


@dataclass(frozen=True)
class Estimate:
    """Seconds of a launch by what may bound it."""

    launch: Launch
    fit: int  # warps in a multiprocessor
    memory: float
    cache: float
    instructions: float
    latency: float

    @property
    def seconds(self) -> float:
        return max(self.memory, self.cache, self.instructions, self.latency)

    def bound(self, gpu: Gpu) -> str:
        if self.seconds == self.latency:
            return "few threads" if self.launch.warps < gpu.multiprocessors * self.fit else "latency"
        return max(("memory", "cache", "instructions"), key=lambda name: float(getattr(self, name)))


def estimate(launch: Launch, resources: Resources, loop: Loop, gpu: Gpu, size: int) -> Estimate:
    """`size`: bytes of inputs and results, which stay in the second-level cache if they fit."""
    in_block = -(-launch.threads // 32)
    shared = max(resources.shared, launch.memory)
    by_shared = gpu.shared // shared * in_block if shared else gpu.warps
    fit = max(1, min(resources.warps, by_shared) // in_block) * in_block  # warps of whole blocks
    accesses = (launch.instructions + launch.shared / 32) / launch.share
    # A pass waits for its slowest load: one that is not in the first cache, where the pass has one
    first = min(1.0, launch.touched / max(launch.sectors, 1) * max(loop.loads, 1))
    miss = gpu.second_cycles if size < gpu.cache_bytes else gpu.memory_cycles
    load = gpu.first_cycles + first * (miss - gpu.first_cycles)
    passes = launch.longest / loop.accesses
    alone = (passes * loop.latency(load) + launch.barriers * gpu.barrier) / gpu.clock
    rounds = max(1, launch.warps / (fit * gpu.multiprocessors))
    return Estimate(
        launch,
        fit,
        memory=32 * launch.touched / launch.share / gpu.copy,
        cache=32 * launch.sectors / launch.share / gpu.cache,
        instructions=accesses / loop.accesses * loop.issue / (4 * gpu.multiprocessors * gpu.clock),
        latency=alone * rounds + launch.serial * gpu.hand_over * (launch.serial > 1),
    )


def plain(name: str) -> str:
    """`each_item<Body>` of a kernel's name, as both compilers write it."""
    kernel = name.removeprefix("void ").removeprefix("commodity::").partition(">(")
    return re.sub(r"\(anonymous namespace\)::|\s", "", kernel[0] + kernel[1].rstrip("("))


class Model:
    """Estimates of calls, from the kernels compiled in a folder."""

    def __init__(self, folder: Path, gpu: Gpu) -> None:
        self.gpu = gpu
        with ThreadPoolExecutor() as pool:
            (folder / "cpu").mkdir()
            library = pool.submit(compile_traced, folder / "cpu")
            resources = compile_kernels("90", folder / "kernels.cubin")
            self.tracer = Tracer(library.result())
        code = disassemble(folder / "kernels.cubin")
        self.kernels = {
            plain(name): (resources[mangled], main_loop(code[mangled]))
            for mangled, name in zip(resources, demangle([*resources]))
        }

    def kernel(self, kernel: str, body: str) -> tuple[Resources, Loop]:
        """With memory beside it, a kernel is compiled twice: for shared memory, and for global."""
        names = [plain(f"{kernel}<{variant}{body}>") for variant in ("", "true, ", "false, ")]
        return next(self.kernels[name] for name in names if name in self.kernels)

    def row(self, cells: tuple[str, str], call: Callable[[], Any], inputs: Sequence[Any], measured: str) -> list[str]:
        counts = self.tracer.count(call)
        if not counts.launches:
            return [*cells, *[""] * 10, "not counted", measured]
        size = counts.size + sum(x.nbytes for x in inputs if isinstance(x, Tensor))
        names = demangle([launch.body for launch in counts.launches])
        estimates = [
            estimate(launch, *self.kernel(launch.kernel, name), self.gpu, size)
            for launch, name in zip(counts.launches, names)
        ]
        gpu, floor, gaps = self.gpu, size / self.gpu.copy, len(estimates) - 1
        # The checks of values, whose results the host reads, come before the kernels
        checks = max(gpu.host * len(counts.torch), sum(counts.torch) / gpu.copy)
        kernels = sum(e.seconds for e in estimates) + gpu.launch * gaps
        seconds = gpu.call + checks + max(kernels, gpu.host * gaps)
        most = max(estimates, key=lambda e: e.seconds)
        launch = most.launch
        fetched = 32 * sum(e.launch.sectors / e.launch.share for e in estimates)
        used = sum(e.launch.bytes / e.launch.share for e in estimates)
        return [
            *cells,
            str(len(estimates)),
            str(len(counts.torch)),
            str(32 * launch.warps),
            str(most.fit),
            f"{fetched / max(used, 1):.1f}",
            f"{sum(e.memory for e in estimates) / floor:.1f}",
            str(launch.longest),
            f"{1e3 * floor:.3f}",
            f"{1e3 * seconds:.3f}",
            f"{floor / seconds:.0%}",
            "the host" if 2 * kernels < seconds else most.bound(gpu),
            measured,
        ]


def measured_gpu() -> Gpu:
    """What the page of the last speeds says of the GPU and its host."""
    copy = re.search(r"a copy runs at (\d+) GB/s", PAGE.read_text())
    assert copy, PAGE
    return Gpu(copy=1e9 * float(copy[1]), call=1e-3 * min(map(float, measured_small().values())))


def measured_small() -> dict[str, str]:
    with PAGE.with_name("cuda-speeds.csv").open() as file:
        return {f"{row['operator']} {row['shape']}": row["forward_ms"] for row in csv.DictReader(file)}


def operator_rows(model: Model) -> Iterator[list[str]]:
    """Every operator at both sizes; windows of the large one are those of the table of speeds."""
    speeds = measured_small()
    for op in sorted(OPERATORS.values(), key=lambda op: op.name):
        if not torch._C._dispatch_has_kernel_for_dispatch_key(op.qualified_name, "CPU"):
            continue
        large = LARGE if is_linear(cases_of(op)[0]) else MATRICES
        cases = {shape: in_size(cases_of(op)[0], shape) for shape in (large, FORECASTER, None)}
        settings = cases[large].sample.settings
        settings.update({name: WINDOWS[name] for name in WINDOWS.keys() & settings.keys()})
        timed = {shape: speeds.get(f"{op.name} {shape_of(case)}", "") for shape, case in cases.items()}
        for shape, case in cases.items():
            if shape or not timed[FORECASTER]:
                yield model.row((f"`{op.name}`", shape_of(case)), case.call, case.tensors, timed[shape])


def in_size(case: Case, shape: tuple[int, int, int] | None) -> Case:
    """A sample in float32 and another size, without a call; as it is if its axes fit no other size."""
    case = case.map_tensors(lambda x: x.float() if x.is_floating_point() else x)
    with suppress(SkipCheck):
        case = resize(case, **dict(zip(("batch", "rows", "assets"), shape))) if shape else case
    return case


def benchmark_rows(model: Model) -> Iterator[list[str]]:
    """The calls of the table of speeds."""
    cuda_kernels.DEVICE = torch.device("cpu")
    _, rows = read_table(PAGE.read_text().partition("<!-- speeds -->")[2].partition("On the sequences")[0])
    speeds = {(row[0].strip("`"), row[1]): row[2] for row in rows}
    for large in cuda_kernels.rows():
        inputs, measured = large.inputs(), speeds.get((large.operator, large.setting), "")
        yield model.row((f"`{large.operator}`", large.setting), partial(large.function, *inputs), inputs, measured)


def accuracy(rows: list[list[str]]) -> str:
    """How far the model is from what was measured, of kernels that are as they were then."""
    changed = changed_since(speeds_commit())
    timed = [row for row in rows if row[10] and row[-1] and row[0] not in changed]
    pairs = sorted((float(row[-1]) / float(row[10]), *row[:2]) for row in timed)
    if not pairs:
        return "None was measured."
    ratios = [ratio for ratio, *_ in pairs]
    (low, least, small), (high, most, large) = pairs[0], pairs[-1]
    return (
        f"Measured / modelled is {median(ratios):.1f} in the median of {len(pairs)} calls, {low:.2f} at the least "
        f"({least}, {small}) and {high:.1f} at the most ({most}, {large}); half are within a factor of "
        f"{median(max(ratio, 1 / ratio) for ratio in ratios):.1f}. The times are of commit {speeds_commit()}; not "
        f"compared, as their kernels changed since: {', '.join(sorted(changed)) or 'none'}."
    )


def speeds_commit() -> str:
    commits = re.findall(r"commit (\w+)", PAGE.read_text().partition("<!-- speeds -->")[2])
    return commits[0]


def changed_since(commit: str) -> set[str]:
    """Operators of which a source, or a header of their family, is not what it was."""
    command = ["git", "diff", "--name-only", commit, "HEAD", "--", "torchcommodity/ops"]
    files = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    changed = {ROOT / file for file in files}
    sources = [path.read_text() for path in KERNELS if changed & with_headers(path)]
    return {f"`{name}`" for source in sources for name in REGISTERED.findall(source)}


def with_headers(source: Path) -> set[Path]:
    """A source and the headers beside it that it includes."""
    headers = re.findall(r'^#include "(.+)"', source.read_text(), re.MULTILINE)
    return {source}.union(*(with_headers(source.parent / name) for name in headers if (source.parent / name).exists()))


def write_section(page: Path, rows: list[list[str]], gpu: Gpu) -> None:
    """The calls that a GPU has timed, those of the large size furthest from the floor, and a file with all."""
    file = page.with_name(f"{page.stem}-model.csv")
    write_csv(file, FIELDS, rows)
    counted = [row for row in rows if row[10]]
    timed = [row for row in rows if row[-1] and is_large(row)]
    large = sorted(
        (row for row in counted if is_large(row) and not row[-1]), key=lambda row: float(row[9]) / float(row[10])
    )
    text = (
        f"[All {len(rows)} calls]({file.name}), as CSV; {len(counted)} were counted. Those with inputs of more "
        f"than a million values that a GPU has timed:\n\n{format_table(HEADS, timed)}\n\n{accuracy(rows)}\n\n"
        f"Of the others of that size, those furthest from the floor:\n\n{format_table(HEADS, large[: LONG // 2])}\n\n"
        f"Copy at {gpu.copy / 1e9:.0f} GB/s, no call under {1e3 * gpu.call:.3f} ms: as measured. nvcc for compute "
        f"capability 9.0; {date()}, commit {commit()}."
    )
    replace_table(page, "model", text)


def is_large(row: list[str]) -> bool:
    shapes = re.findall(r"\(([\d, ]+)\)", row[1])
    return any(math.prod(int(size) for size in shape.split(",") if size.strip()) > 1 << 20 for shape in shapes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, help="Page whose table `model` is replaced, with a CSV beside it")
    page, gpu = parser.parse_args().page, measured_gpu()
    with tempfile.TemporaryDirectory() as folder:
        model = Model(Path(folder), gpu)
    rows = list[list[str]]()
    for row in chain(benchmark_rows(model), operator_rows(model)):
        print(" | ".join(row), flush=True)
        rows.append(row)
    print(accuracy(rows))
    if page:
        write_section(page, rows, gpu)


if __name__ == "__main__":
    main()
