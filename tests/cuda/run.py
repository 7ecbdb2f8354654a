"""Everything that needs a GPU, in parts of at most ten minutes each: `make test-cuda`.

python tests/cuda/run.py                    # all parts, in order
python tests/cuda/run.py build contract     # some

Each part writes a table, row by row, to out/cuda/PART.md, and then into docs/results/cuda.md. It exits with 1 if a row
failed, with 0 and a line without a GPU. torch, numpy and, for `build`, nvcc are enough; rows that need more say so.
"""

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path

from gpu import OUT, PAGE, ROOT, exit_without_gpu, gpu_name

sys.path.insert(0, str(ROOT / "benchmarks"))  # before the package `markdown`, if it is installed

from markdown import environment, replace_table

PARTS = ("build", "contract", "shapes", "models", "modes", "sanitizer", "forecaster")
SECONDS = 570


def run(part: str) -> bool:
    """Run a part in a process group of its own; whether it passed."""
    print(f"\n{part}", flush=True)
    command = [sys.executable, str(Path(__file__).with_name(f"{part}.py"))]
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    outcome = ""
    try:
        if process.wait(SECONDS):
            outcome = "" if "FAIL" in table(part) else f"**FAIL** exit code {process.returncode}"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        outcome = f"**FAIL** stopped after {SECONDS} s; the rows above are complete"
    text = "\n\n".join(filter(None, [table(part), outcome, environment(gpu_name())]))
    replace_table(PAGE, part, text)
    return "FAIL" not in text


def table(part: str) -> str:
    path = OUT / f"{part}.md"
    return path.read_text().strip() if path.exists() else "no table was written"


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
