"""compute-sanitizer over every operator: invalid accesses, races in shared memory, uninitialized reads, barriers.

The kernels of this library have names that begin with `each_`, and only those are instrumented: torch's own take most
of the time. `initcheck` must see what torch's kernels write too; of its reports those that name ours count. Without the
caching allocator every tensor is an allocation of its own, so that a read beyond it is seen. A tool runs in several
processes, which share the operators that it has not seen in this library. `sanitizer.py racecheck`: one tool.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from gpu import OUT, ROOT, Passed, Table, exit_without_gpu
from operators import native_operators

TOOLS = {
    "memcheck": "accesses out of bounds or misaligned",
    "racecheck": "races in shared memory",
    "initcheck": "reads of uninitialized memory",
    "synccheck": "invalid barriers",
}
SECONDS = int(os.environ.get("TORCHCOMMODITY_CUDA_SECONDS", 200))
PROCESSES = 12  # of all tools
OWN = re.compile(r"^=========     at .*\beach_(?:item|item_with_memory|link|loop|row|team)\b", re.MULTILINE)


def find_tool() -> str | None:
    from torch.utils.cpp_extension import CUDA_HOME

    places = [Path(CUDA_HOME, part) for part in ("bin", "compute-sanitizer")] if CUDA_HOME else []
    path = os.pathsep.join([os.environ.get("PATH", ""), *map(str, places), "/usr/local/cuda/bin"])
    return shutil.which("compute-sanitizer", path=path)


def log_path(name: str, part: int) -> Path:
    return OUT / f"sanitizer-{name}-{part}.log"


def start(tool: str, name: str, part: int, operators: Sequence[str]) -> subprocess.Popen[bytes]:
    watch = [tool, "--tool", name, "--report-api-errors", "no"]
    if name != "initcheck":
        watch += ["--kernel-name", "kernel_substring=each_"]
    command = [*watch, sys.executable, str(Path(__file__).with_name("once.py")), *operators]
    environment = os.environ | {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "OMP_NUM_THREADS": "1"}
    with log_path(name, part).open("wb") as log:
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT)


def outcome(processes: Sequence[subprocess.Popen[bytes]], name: str, deadline: float) -> tuple[list[str], str]:
    """Operators that ran, and the reports in words."""
    operators, errors = list[str](), 0
    stopped, failures = False, list[str]()
    for part, process in enumerate(processes):
        try:
            process.wait(max(deadline - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            stopped = True
            process.kill()
            process.wait()
        text = log_path(name, part).read_text(errors="replace")
        operators += re.findall(r"^ran (\w+)", text, re.MULTILINE)
        total = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)", text)
        own = len(OWN.findall(text))
        errors += own if name == "initcheck" or not total else int(total[-1])
        if not total and process.returncode >= 0:
            failures.append(f"no summary, exit code {process.returncode}: {text[-300:]}")
    if errors:
        return operators, f"**FAIL** {errors} reports: see sanitizer-{name}-*.log"
    if failures:
        return operators, f"**FAIL** {failures[0]}"
    return operators, f"none so far, stopped after {SECONDS} s" if stopped else "none"


def main() -> None:
    exit_without_gpu()
    names = sys.argv[1:] or list(TOOLS)
    table = Table("sanitizer", "tool", "looks for", "operators run", "reports", again=names)
    tool = find_tool()
    if tool is None:
        table.row("compute-sanitizer", "", "", "skipped: it is not installed")
        return
    deadline = time.monotonic() + SECONDS
    all_operators = [op.name for op in native_operators()]
    passed = {name: Passed(f"sanitizer-{name}") for name in names}
    running = {}
    for name in names:  # side by side
        left = [operator for operator in all_operators if operator not in passed[name].names]
        count = min(len(left), PROCESSES // len(names))
        running[name] = [start(tool, name, k, left[k::count]) for k in range(count)]
    for name, processes in running.items():
        operators, reports = outcome(processes, name, deadline)
        table.failed |= "FAIL" in reports
        if "FAIL" not in reports:
            for operator in operators:
                passed[name].add(operator)
            Passed("sanitizer").add(name)
        count = len({*operators, *passed[name].names})
        table.row(f"`{name}`", TOOLS[name], f"{count} of {len(all_operators)}", reports)
    raise SystemExit(table.failed)


if __name__ == "__main__":
    main()
