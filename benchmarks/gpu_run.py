"""Everything that needs a GPU, in parts of at most four minutes each: `make test-cuda`.

python benchmarks/gpu_run.py                    # all parts, the most important first
python benchmarks/gpu_run.py --seconds 840      # as many as end in 14 minutes; run again, it goes on with the others
python benchmarks/gpu_run.py build contract     # some, also if they have passed with this library
TORCHCOMMODITY_STAND_IN=cpu python benchmarks/gpu_run.py  # without a GPU, small inputs, few operators: finds typos

Each part writes a table, row by row, to out/cuda/PART.md, and then into docs/results/cuda.md; a long one goes to a CSV
file beside the page, which counts its rows and shows those that did not pass. The table of `build` stays in out/cuda.
It exits with 1 if a row failed, with 0 and a line without a GPU. torch, numpy and, for `build`, nvcc are enough; rows
that need more say so.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # before the package `markdown`, if it is installed
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "cuda"))

from gpu import OUT, PAGE, REHEARSAL, ROOT, Passed, exit_without_gpu, gpu_name
from markdown import LONG, Rows, environment, format_table, read_table, replace_table, write_csv

# In the order of what is asked first of a GPU that is there for minutes
PARTS = {
    "build": "tests/cuda/build.py",
    "contract": "tests/cuda/contract.py",
    "speeds": "benchmarks/cuda_kernels.py",
    "variants": "tests/cuda/variants.py",
    "racecheck": "tests/cuda/sanitizer.py racecheck",
    "memcheck": "tests/cuda/sanitizer.py memcheck",
    "training": "tests/cuda/training.py",
    "modes": "tests/cuda/modes.py",
    "forecaster": "tests/cuda/forecaster.py",
    "shapes": "tests/cuda/shapes.py",
    "models": "tests/cuda/models.py",
    "synccheck": "tests/cuda/sanitizer.py synccheck",
    "initcheck": "tests/cuda/sanitizer.py initcheck",
}
GROUPS = {"shapes": "dtype", "modes": "mode"}  # column by which the rows of a part are counted
SECTIONS = dict.fromkeys(("racecheck", "memcheck", "synccheck", "initcheck"), "sanitizer")  # that parts share
UNPUBLISHED = ("build",)
WITH_OWN_SECTION = ("speeds",)  # write their own tables into the page
SECONDS, FEWEST_SECONDS = 240, 30  # of a part


def run(part: str, seconds: float) -> bool:
    """Run a part in a process group of its own, which ends with it; whether it passed."""
    print(f"\n{part}", flush=True)
    process = subprocess.Popen([sys.executable, *PARTS[part].split()], cwd=ROOT, start_new_session=True)
    error = ""
    try:
        if process.wait(seconds):
            error = "" if "FAIL" in table(part) else f"**FAIL** exit code {process.returncode}"
    except subprocess.TimeoutExpired:
        error = f"**FAIL** stopped after {seconds:.0f} s; the rows above are complete"
    finally:  # also if this script is told to end: what ran on would take the time of the next part
        end_group(process)
    if part not in (*UNPUBLISHED, *WITH_OWN_SECTION):
        write_section(part, table(part), "\n\n".join(filter(None, [error, environment(gpu_name())])))
    return "FAIL" not in table(part) + error


def end_group(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def table(part: str) -> str:
    path = OUT / f"{SECTIONS.get(part, part)}.md"
    return path.read_text().strip() if path.exists() else "no table was written"


def write_section(part: str, text: str, note: str) -> None:
    """Replace the table of a part on the page; if it is long, by its counts and the rows that did not pass."""
    if text.count("\n") > LONG:
        heads, rows = read_table(text)
        file = PAGE.with_name(f"{PAGE.stem}-{part}.csv")
        write_csv(file, [head.replace(" ", "_") for head in heads], rows)
        totals = ", ".join(f"{count} {kind}" for kind, count in counts(rows).items())
        text = f"[All {len(rows)} rows]({file.name}), as CSV: {totals}."
        if part in GROUPS:
            column = heads.index(GROUPS[part])
            groups = {
                value: [row for row in rows if row[column] == value] for value in {row[column]: 0 for row in rows}
            }
            cells = [[value, *map(str, counts(group).values())] for value, group in groups.items()]
            text += f"\n\n{format_table([GROUPS[part], *counts(rows)], cells)}"
        if others := [row for row in rows if outcome(row) != "pass"]:
            text += f"\n\nThose that did not pass:\n\n{format_table(heads, others)}"
    replace_table(PAGE, SECTIONS.get(part, part), f"{text}\n\n{note}")


def counts(rows: Rows) -> dict[str, int]:
    return {kind: sum(outcome(row) == kind for row in rows) for kind in ("pass", "fail", "skipped")}


def outcome(row: Sequence[str]) -> str:
    return "fail" if "FAIL" in row[-1] else "skipped" if row[-1].startswith("skipped") else "pass"


def run_parts(parts: Sequence[str], deadline: float) -> tuple[list[str], list[str]]:
    """Run parts until the deadline; those that failed, and those that did not start."""
    failed = []
    for k, part in enumerate(parts):
        seconds = min(SECONDS, deadline - time.monotonic())
        if seconds < FEWEST_SECONDS:
            return failed, list(parts[k:])
        if run(part, seconds):
            Passed("parts").add(part)
        else:
            failed.append(part)
    return failed, []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"Of {', '.join(PARTS)}; default: those not passed")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="Time for all parts")
    arguments = parser.parse_args()
    if unknown := [part for part in arguments.parts if part not in PARTS]:
        parser.error(f"expected {', '.join(PARTS)}; got {', '.join(unknown)}")
    exit_without_gpu()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if REHEARSAL:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "docs" / "results" / "cuda.md", PAGE)
    deadline = time.monotonic() + arguments.seconds
    first = [part for part in arguments.parts or PARTS if part == "build"]
    failed, _ = run_parts(first, deadline)  # before it is known what has passed with this library
    passed = set() if arguments.parts else Passed("parts").names
    others = [part for part in arguments.parts or PARTS if part not in {*first, *passed}]
    failed_later, left = run_parts([] if failed else others, deadline)
    failed += failed_later
    print(f"\n{PAGE}: {', '.join(failed) + ' failed' if failed else 'all parts passed'}")
    if left:
        print(f"not started: {', '.join(left)}")
    raise SystemExit(bool(failed or left))


if __name__ == "__main__":
    main()
