"""Everything that needs a GPU, in parts of at most four minutes each: `make test-cuda`.

python tests/cuda/run.py                    # all parts, in order
python tests/cuda/run.py build contract     # some; what passed with this library is not run again

Each part writes a table, row by row, to out/cuda/PART.md, and then into docs/results/cuda.md; a long one goes to a CSV
file beside the page, which counts its rows and shows those that did not pass. The table of `build` stays in out/cuda.
It exits with 1 if a row failed, with 0 and a line without a GPU. torch, numpy and, for `build`, nvcc are enough; rows
that need more say so.
"""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from gpu import OUT, PAGE, ROOT, exit_without_gpu, gpu_name

sys.path.insert(0, str(ROOT / "benchmarks"))  # before the package `markdown`, if it is installed

from markdown import LONG, Rows, environment, format_table, read_table, replace_table, write_csv

PARTS = ("build", "contract", "shapes", "models", "modes", "forecaster", "speeds", "sanitizer")
GROUPS = {"shapes": "dtype", "modes": "mode"}  # column by which the rows of a part are counted
BENCHMARKS = {"speeds": "benchmarks/cuda_kernels.py"}  # write their own tables into the page
SECONDS = 240


def run(part: str) -> bool:
    """Run a part in a process group of its own; whether it passed."""
    print(f"\n{part}", flush=True)
    command = [sys.executable, BENCHMARKS.get(part, f"tests/cuda/{part}.py")]
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    error = ""
    try:
        if process.wait(SECONDS):
            error = "" if "FAIL" in table(part) else f"**FAIL** exit code {process.returncode}"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        error = f"**FAIL** stopped after {SECONDS} s; the rows above are complete"
    if part in BENCHMARKS:
        return not error
    if part != "build":
        write_section(part, table(part), "\n\n".join(filter(None, [error, environment(gpu_name())])))
    return "FAIL" not in table(part) + error


def table(part: str) -> str:
    path = OUT / f"{part}.md"
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
    replace_table(PAGE, part, f"{text}\n\n{note}")


def counts(rows: Rows) -> dict[str, int]:
    return {kind: sum(outcome(row) == kind for row in rows) for kind in ("pass", "fail", "skipped")}


def outcome(row: Sequence[str]) -> str:
    return "fail" if "FAIL" in row[-1] else "skipped" if row[-1].startswith("skipped") else "pass"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"Of {', '.join(PARTS)}; default: all")
    parts = parser.parse_args().parts or PARTS
    if unknown := [part for part in parts if part not in PARTS]:
        parser.error(f"expected {', '.join(PARTS)}; got {', '.join(unknown)}")
    exit_without_gpu()
    failed = [part for part in parts if not run(part)]
    print(f"\n{PAGE.relative_to(ROOT)}: {', '.join(failed) + ' failed' if failed else 'all parts passed'}")
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
