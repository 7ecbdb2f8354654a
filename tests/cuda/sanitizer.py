"""compute-sanitizer over every operator: invalid accesses, races in shared memory, uninitialized reads, barriers.

The kernels of this library are `each_item` and `each_row`; what the tools report of others is counted apart. Without
the caching allocator every tensor is an allocation of its own, so that a read beyond it is seen.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from gpu import OUT, ROOT, Table, exit_without_gpu

TOOLS = {
    "memcheck": "accesses out of bounds or misaligned",
    "racecheck": "races in shared memory",
    "initcheck": "reads of uninitialized memory",
    "synccheck": "invalid barriers",
}
SECONDS = 500
OWN = re.compile(r"\bat .*\beach_(item|row)\b|\b(in|by) .*\beach_(item|row)\b")


def find_tool() -> str | None:
    from torch.utils.cpp_extension import CUDA_HOME

    places = [Path(CUDA_HOME, part) for part in ("bin", "compute-sanitizer")] if CUDA_HOME else []
    path = os.pathsep.join([os.environ.get("PATH", ""), *map(str, places), "/usr/local/cuda/bin"])
    return shutil.which("compute-sanitizer", path=path)


def start(tool: str, name: str) -> subprocess.Popen[bytes]:
    command = [tool, "--tool", name, "--print-limit", "1000", sys.executable, str(Path(__file__).with_name("once.py"))]
    environment = os.environ | {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "OMP_NUM_THREADS": "1"}
    with (OUT / f"sanitizer-{name}.log").open("wb") as log:
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT)


def outcome(process: subprocess.Popen[bytes], name: str) -> tuple[str, str]:
    """Operators that ran, and the reports in words."""
    timed_out = False
    try:
        process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        timed_out = True
        process.kill()
    text = (OUT / f"sanitizer-{name}.log").read_text(errors="replace")
    operators = len(re.findall(r"^ran ", text, re.MULTILINE))
    own, total = len(OWN.findall(text)), re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)", text)
    if own:
        return str(operators), f"**FAIL** {own} lines name kernels of this library: see sanitizer-{name}.log"
    if timed_out:
        return str(operators), f"none so far, stopped after {SECONDS} s"
    if not total:
        return str(operators), f"**FAIL** no summary, exit code {process.returncode}: {text[-300:]}"
    others = f", {total[-1]} in kernels of others" if int(total[-1]) else ""
    return str(operators), f"none in kernels of this library{others}"


def main() -> None:
    exit_without_gpu()
    table, tool = Table("sanitizer", "tool", "looks for", "operators run", "reports"), find_tool()
    if tool is None:
        table.row("compute-sanitizer", "", "", "skipped: it is not installed")
        return
    processes = {name: start(tool, name) for name in TOOLS}  # side by side
    for name, process in processes.items():
        operators, reports = outcome(process, name)
        table.failed |= "FAIL" in reports
        table.row(f"`{name}`", TOOLS[name], operators, reports)
    raise SystemExit(table.failed)


if __name__ == "__main__":
    main()
