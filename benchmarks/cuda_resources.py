"""Registers, shared memory and spills of the CUDA kernels, as nvcc reports them: no GPU is needed.

python benchmarks/cuda_resources.py --page docs/results/cuda.md

A multiprocessor of compute capability 9.0 holds up to 64 warps; the registers of a kernel allow fewer. Few warps hide
little of the time that memory takes, and registers that are spilled are memory themselves.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "ops"))

from cuda_unity import INCLUDES, nvcc, unity
from markdown import EXTREMES, commit, date, format_table, replace_table, write_csv

HEADS = ("kernel", "body", "registers", "warps", "shared memory, bytes", "stack, bytes", "spilled, bytes")
ENTRY = re.compile(
    r"Compiling entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores.*?Used (\d+) registers"
    r"([^\n]*)",
    re.DOTALL,
)
SHARED = re.compile(r"(\d+) bytes smem")
WARPS, REGISTERS = 64, 65536  # of a multiprocessor; 8 registers of a thread are allocated at a time


@dataclass(frozen=True)
class Resources:
    """Of one kernel."""

    stack: int
    spilled: int
    registers: int
    shared: int

    @property
    def warps(self) -> int:
        """How many a multiprocessor holds."""
        allocated = -(-self.registers // 8) * 8
        return min(WARPS, REGISTERS // (allocated * 32))


def compile_kernels(architecture: str, cubin: Path) -> dict[str, Resources]:
    """Compile all kernels; what the assembler says of each, by mangled name."""
    compiler = nvcc()
    if compiler is None:
        raise SystemExit("cuda_resources: nvcc is not installed")
    options = ["-std=c++20", "-DTORCH_TARGET_VERSION=0x020a000000000000", "-DUSE_CUDA", "-Xcompiler=-fPIC"]
    options += ["--expt-relaxed-constexpr", "-Xptxas=-v", *(f"-I{path}" for path in INCLUDES)]
    target = [f"-gencode=arch=compute_{architecture},code=sm_{architecture}", "-cubin", "-o", str(cubin)]
    process = subprocess.run([compiler, *options, *target, str(unity(cubin.parent))], capture_output=True, text=True)
    if process.returncode:
        raise SystemExit(process.stderr[-3000:])
    return read_report(process.stderr)


def read_report(report: str) -> dict[str, Resources]:
    table = {}
    for name, stack, spilled, registers, rest in ENTRY.findall(report):
        shared = SHARED.search(rest)
        table[name] = Resources(int(stack), int(spilled), int(registers), int(shared[1]) if shared else 0)
    return table


def rows(kernels: dict[str, Resources]) -> list[list[str]]:
    names = subprocess.run(["c++filt"], input="\n".join(kernels), capture_output=True, text=True).stdout.splitlines()
    table = []
    for used, (kernel, body) in zip(kernels.values(), map(split_name, names)):
        numbers = used.registers, used.warps, used.shared, used.stack, used.spilled
        table.append([kernel, body, *map(str, numbers)])
    return sorted(table, key=lambda row: (int(row[3]), row[:2]))


def split_name(name: str) -> tuple[str, str]:
    """`each_item<Window<float>>(...)` is the kernel each_item with the body Window<float>; without namespaces."""
    plain = re.sub(r"(\(anonymous namespace\)|\{lambda[^}]*\}|\w+)::|\s(?=>)", "", name.removeprefix("void "))
    kernel, _, body = plain.partition("<")
    return f"`{kernel}`", f"`{body.rpartition('>(')[0] or body}`"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, help="Page whose table `resources` is replaced, with a CSV beside it")
    page = parser.parse_args().page
    with tempfile.TemporaryDirectory() as folder:
        table = rows(compile_kernels("90", Path(folder) / "kernels.cubin"))
    few = format_table(HEADS, table[:EXTREMES])
    if page is None:
        print(few)
        return
    file = page.with_name(f"{page.stem}-resources.csv")
    write_csv(file, ["kernel", "body", "registers", "warps", "shared", "stack", "spilled"], table)
    spilling = sum(row[-1] != "0" for row in table)
    half = sum(int(row[3]) < WARPS // 2 for row in table)
    text = (
        f"[All {len(table)} kernels]({file.name}), as CSV: {spilling} spill registers, {half} leave less than half of "
        f"the warps. Those that leave the fewest:\n\n{few}\n\nnvcc for compute capability 9.0; {date()}, commit "
        f"{commit()}."
    )
    replace_table(page, "resources", text)


if __name__ == "__main__":
    main()
