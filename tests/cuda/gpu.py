"""The device of the scripts in this folder, and the tables that they write.

They need torch, numpy and the native library; a script whose part needs more says in words what is missing.
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REHEARSAL = os.environ.get("TORCHCOMMODITY_STAND_IN") == "cpu"  # small inputs on the CPU, and a page of its own
OUT = Path(os.environ.get("TORCHCOMMODITY_CUDA_OUT", ROOT / "out" / ("rehearsal" if REHEARSAL else "cuda")))
PAGE = OUT / "cuda.md" if REHEARSAL else ROOT / "docs" / "results" / "cuda.md"
sys.path[:0] = [str(ROOT)]  # the library of this checkout, from any working directory

try:
    import torch
    from torch import Tensor
except ModuleNotFoundError:
    rule = "`make dev` installs it for the CPU; on a machine with a GPU, pass GPU_PYTHON=/path/to/a/python/with/torch"
    raise SystemExit(f"no torch in {sys.executable}: {rule}") from None

if os.environ.get("TORCHCOMMODITY_STAND_IN") == "single":
    import stand_in  # noqa: F401

DEVICE = torch.device(os.environ.get("TORCHCOMMODITY_STAND_IN", "cuda"))


def exit_without_gpu() -> None:
    """Say why nothing can run, and exit with 0."""
    if DEVICE.type == "cuda" and not torch.cuda.is_available():
        print("no GPU:", "torch finds none" if torch.version.cuda else f"torch {torch.__version__} has no CUDA")
        raise SystemExit(0)


def gpu_name() -> str:
    if DEVICE.type != "cuda":
        return f"{DEVICE} in place of a GPU, torch {torch.__version__}"
    return f"{torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}"


def synchronize() -> None:
    """Wait for the device; errors of kernels are raised here."""
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


def to_gpu(x: Tensor) -> Tensor:
    return x.to(DEVICE)


class Table:
    """A table in Markdown that is written row by row: what was found stands there, however the script ends.

    Rows that have passed with this library stay, without those of names that run `again`.
    """

    def __init__(self, part: str, *heads: str, again: Sequence[str] = ()) -> None:
        OUT.mkdir(parents=True, exist_ok=True)
        self.path, self.failed = OUT / f"{part}.md", False
        if "TORCHCOMMODITY_CUDA_APPEND" not in os.environ:
            rows = self.path.read_text().splitlines(keepends=True)[2:] if self.path.exists() else []
            kept = [row for row in rows if row.split("|")[1].strip(" `") in Passed(part).names - {*again}]
            self.path.write_text(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n{''.join(kept)}")

    def sort(self) -> None:
        """Rows by the name in their first cell."""
        head, rule, *rows = self.path.read_text().splitlines()
        self.path.write_text("\n".join([head, rule, *sorted(rows, key=lambda row: row.split("|")[1])]) + "\n")

    def row(self, *cells: object) -> None:
        line = f"| {' | '.join(' '.join(str(cell).replace('|', '/').split()) for cell in cells)} |"
        print(line, flush=True)
        with self.path.open("a") as file:
            file.write(f"{line}\n")

    def check(self, *cells: object, call: Callable[[], str | None]) -> None:
        """A row that ends in what `call` returns, `pass` without a return value, or its error."""
        try:
            result = call() or "pass"
            synchronize()
        except ImportError as error:
            result = f"skipped: {error}"
        except Exception as error:
            self.failed, result = True, f"**FAIL** {type(error).__name__}: {str(error)[:300]}"
        self.row(*cells, result)


class Passed:
    """The operators that have passed a part with this native library: a part that is run again leaves them out."""

    def __init__(self, part: str) -> None:
        from torchcommodity import ops

        self.path = OUT / f"{part}.passed"
        library = hashlib.sha256(ops.NATIVE.path.read_bytes()).hexdigest() if ops.NATIVE.path else ""
        lines = self.path.read_text().split() if self.path.exists() else []
        if lines[:1] != [library]:
            lines = [library]
            self.path.write_text(f"{library}\n")
        self.names = set(lines[1:])

    def add(self, name: str) -> None:
        with self.path.open("a") as file:
            file.write(f"{name}\n")


def run_each(script: str, names: Sequence[str], table: Table, seconds: float = 400) -> None:
    """`script NAME` for every name, each in a process of its own: an illegal access leaves a process without a GPU."""
    environment = os.environ | {"TORCHCOMMODITY_CUDA_APPEND": "1", "OMP_NUM_THREADS": "1"}
    passed = Passed(table.path.stem)

    def run(name: str) -> None:
        command = [sys.executable, script, name]
        try:
            process = subprocess.run(command, env=environment, timeout=seconds, capture_output=True, text=True)
            if process.returncode and "FAIL" not in process.stdout:
                table.row(f"`{name}`", f"**FAIL** exit code {process.returncode}: {process.stderr[-300:]}")
            table.failed |= process.returncode != 0
            if not process.returncode:
                passed.add(name)
        except subprocess.TimeoutExpired:
            table.row(f"`{name}`", f"**FAIL** stopped after {seconds:.0f} s")
            table.failed = True

    with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
        list(pool.map(run, [name for name in names if name not in passed.names]))
    table.sort()
