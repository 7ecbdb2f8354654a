"""Sizes of launches, timed against each other: each variant is a library with one constant of launch_sizes.h changed.

The fastest is no setting: whoever reads the table changes the constant. `variants.py LIBRARY NAME`: time one operator.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gpu import REHEARSAL, ROOT, Table, exit_without_gpu

SIZES = ROOT / "torchcommodity" / "ops" / "_csrc" / "launch_sizes.h"
SCANS = ("ewm_mean", "garch_variance", "garch_variance_backward", "linear_recurrence")
VARIANTS = {
    "kScanRows": ((4, 8, 16), SCANS),
    "kScanThreads": ((256, 512), SCANS),
    "kScanGroup": ((2, 4, 8), SCANS),
    "kScanBlocks": ((1, 2, 3), SCANS),
    "kChunk": ((32, 64, 128), ("gather_lag",)),
    "kFewThreads": ((1 << 13, 1 << 15, 1 << 17), ("egarch_variance", "hamilton_filter")),
}
SHAPES = [(32, 1000, 10), (4, 10000, 1024)]


def compile_variant(folder: Path, constant: str, value: int, operators: tuple[str, ...]) -> Path:
    """The kernels of some operators as a library."""
    from native.library import block_text, sources
    from torch_opkit.build import Toolchain, gencode

    headers, target = folder / "csrc", folder / "kernels.so"
    shutil.copytree(SIZES.parent, headers)
    text, count = re.subn(rf"\b{constant} = [^,;]+", f"{constant} = {value}", SIZES.read_text())
    assert count == 1, f"{constant} is defined {count} times"
    (headers / SIZES.name).write_text(text)
    paths = [path for path in sources(cuda=True) if path.name.split(".")[0] in operators and path.suffix != ".cpp"]
    source = folder / "kernels.cu"
    source.write_text(block_text(paths, gpu=True))
    emulation = ROOT / "tests" / "ops" / "cuda_emulation"
    if REHEARSAL:
        source = source.rename(source.with_suffix(".cpp"))
    toolchain = Toolchain(
        cuda=not REHEARSAL,
        include=(emulation, headers) if REHEARSAL else (headers,),
        gencode=() if REHEARSAL else tuple(gencode()),
        cuda_cflags=("--expt-relaxed-constexpr",),
    )
    toolchain.build([source], folder / "objects", target)
    return target


def time_operator(library: str, name: str) -> None:
    """Print the milliseconds at each shape."""
    sys.path.insert(0, str(ROOT / "benchmarks"))  # before the package `markdown`, if it is installed
    import torch
    from cuda_kernels import median_times
    from operators import cases_of, on_gpu, resized

    from torch_opkit import OPERATORS
    from torchcommodity import ops

    assert not ops.NATIVE
    torch.ops.load_library(library)
    for shape in SHAPES[:1] if REHEARSAL else SHAPES:
        case = on_gpu(resized(cases_of(OPERATORS[f"commodity::{name}"])[0], *shape, torch.float32))
        with torch.no_grad():
            print(f"{median_times({'': case.call}, 3 if REHEARSAL else 21)['']:.3f}")


def main() -> None:
    exit_without_gpu()
    table = Table("variants", "constant", "value", "operator", *(f"{shape}, ms" for shape in SHAPES), "result")
    variants = [(constant, value) for constant, (values, _) in VARIANTS.items() for value in values]
    environment = os.environ | {"TORCHCOMMODITY_NATIVE": "0"}
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(os.cpu_count()) as pool:
        libraries = {}
        for constant, value in variants[:1] if REHEARSAL else variants:
            folder = Path(place, f"{constant}-{value}")
            folder.mkdir()
            operators = VARIANTS[constant][1]
            libraries[constant, value] = pool.submit(compile_variant, folder, constant, value, operators)
        for (constant, value), library in libraries.items():
            for name in VARIANTS[constant][1]:
                command = [sys.executable, __file__, str(library.result()), name]
                process = subprocess.run(command, env=environment, capture_output=True, text=True)
                times = [*process.stdout.split(), *[""] * len(SHAPES)][: len(SHAPES)]
                result = f"**FAIL** {process.stderr[-200:]}" if process.returncode else "pass"
                table.failed |= process.returncode != 0
                table.row(constant, value, f"`{name}`", *times, result)
    raise SystemExit(table.failed)


if __name__ == "__main__":
    exit_without_gpu()
    time_operator(*sys.argv[1:]) if len(sys.argv) == 3 else main()
