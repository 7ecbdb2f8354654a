"""The wheel beside every torch and Python that it promises: `make test-versions`.

python tests/versions/run.py                                       # the table
python tests/versions/run.py --torch "2.10 2.15" --pythons 3.12    # some
python tests/versions/run.py --parts "operators artifacts"         # some parts

Each torch and Python gets an environment of its own, made by uv, with the wheel of dist/ and no compiler, and removed
afterwards. Its parts write to out/versions/WHEEL/; the tables in docs/results/versions.md are made of what is there.
At the end the older versions read the artifacts that newer ones wrote. It exits with 1 if something failed.
"""

import argparse
import hashlib
import json
import platform
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from environments import InstallError, MissingError, environment, install, variables
from tables import write_tables

TORCH = ("2.10", "2.11", "2.12", "2.13", "2.14", "2.15")
PYTHONS = ("3.10", "3.12", "3.14", "3.14t")
# every torch with one Python, the newest torch with every Python, the oldest with the oldest
DEFAULT = [("2.10", "3.10"), *((torch, "3.12") for torch in TORCH), *(("2.15", p) for p in PYTHONS if p != "3.12")]
PARTS = ("operators", "contract", "forecast", "artifacts")
NEED_FORECAST = ("forecast", "artifacts")  # the extra
SECONDS = 3600  # of a part; the contract takes minutes
HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def find_wheel() -> Path:
    """The newest wheel for this machine in dist/."""
    system = {"linux": "linux", "darwin": "macosx"}.get(sys.platform, sys.platform)
    wheels = [
        path
        for path in (ROOT / "dist").glob("torchcommodity-*.whl")
        if system in path.stem and path.stem.endswith(platform.machine())
    ]
    if not wheels:
        raise SystemExit(f"dist/ must contain a wheel for {system} {platform.machine()}; run `make wheel` first")
    return max(wheels, key=lambda path: path.stat().st_mtime)


def output_folder(wheel: Path) -> Path:
    """Results of one wheel."""
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()[:12]
    folder = ROOT / "out" / "versions" / f"{wheel.stem}-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def run_environment(torch: str, python: str, parts: list[str], wheel: Path, out: Path, keep: bool) -> None:
    """Run the parts beside one torch and Python, and write down what they return and what was skipped."""
    name = f"torch-{torch}-python-{python}"
    path = out / f"{name}.json"
    earlier = json.loads(path.read_text())["parts"] if path.exists() else {}
    record = {"torch": torch, "python": python, "skipped": "", "note": "", "error": "", "parts": earlier}
    print(f"\n{name}", flush=True)
    try:
        with environment(out / name, python, keep) as interpreter:
            record["note"] = install(interpreter, torch, wheel)
            for part in parts:
                if not (record["note"] and part in NEED_FORECAST):
                    record["parts"][part] = run_part(part, torch, interpreter, out)
    except MissingError as missing:
        record["skipped"] = str(missing)
    except InstallError as error:
        record["error"] = str(error)
    print("; ".join(filter(None, (record["skipped"], record["note"], record["error"]))), flush=True)
    path.write_text(json.dumps(record, indent=1))


def run_part(part: str, torch: str, interpreter: Path, out: Path) -> dict[str, Any]:
    """What a script of this folder returns in the environment; or its error."""
    folder = interpreter.parents[1]
    result = folder / "result.json"
    result.unlink(missing_ok=True)
    own = {"TORCHCOMMODITY_VERSIONS_OUT": str(out), "TORCHCOMMODITY_VERSIONS_TORCH": torch}
    command = [str(interpreter), str(HERE / f"{part}.py")]
    settings, start = variables(folder) | own, time.monotonic()
    try:
        process = subprocess.run(command, cwd=folder, env=settings, stderr=subprocess.PIPE, text=True, timeout=SECONDS)
        error = process.stderr.strip() or f"exit code {process.returncode}"
    except subprocess.TimeoutExpired:
        error = f"stopped after {SECONDS} s"
    outcome = "done" if result.exists() else f"FAIL {error[-2000:]}"
    print(f"  {part}, {time.monotonic() - start:.0f} s: {outcome}", flush=True)
    return json.loads(result.read_text()) if result.exists() else {"error": last_error(error)}


def last_error(stderr: str) -> str:
    """The exception of a traceback, which libraries may follow with lines of their own."""
    lines = stderr.splitlines()
    return next((line for line in reversed(lines) if re.match(r"[\w.]+(Error|Exception): ", line)), lines[-1])[:400]


def read_records(out: Path) -> list[dict[str, Any]]:
    """What was written down about this wheel, by version of torch and Python."""
    records = [json.loads(path.read_text()) for path in out.glob("torch-*.json")]
    return sorted(records, key=lambda record: [_version(record["torch"]), _version(record["python"])])


def _version(text: str) -> tuple[list[int], str]:
    numbers = text.rstrip("t")
    return [int(part) for part in numbers.split(".")], text[len(numbers) :]


def pairs(torches: list[str], pythons: list[str]) -> list[tuple[str, str]]:
    """Every torch with every Python of these; by default, those of the table."""
    if not torches and not pythons:
        return DEFAULT
    return [(torch, python) for torch in torches or TORCH for python in pythons or PYTHONS]


def late_readers(out: Path) -> dict[str, str]:
    """For each torch that has not read every artifact, a Python with which it read some."""
    files = {path.stem for path in (out / "artifacts").glob("*.pt2")}
    readers = [record for record in read_records(out) if "files" in record["parts"].get("artifacts", {})]
    complete = {record["torch"] for record in readers if files <= record["parts"]["artifacts"]["files"].keys()}
    return {record["torch"]: record["python"] for record in reversed(readers) if record["torch"] not in complete}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option, values in (("--torch", TORCH), ("--pythons", PYTHONS), ("--parts", PARTS)):
        parser.add_argument(option, default="", metavar="NAMES", help=f"Default: {' '.join(values)}")
    parser.add_argument("--keep", action="store_true", help="Keep the environments in out/versions/")
    arguments = parser.parse_args()
    parts = arguments.parts.split() or list(PARTS)
    if unknown := set(parts) - set(PARTS):
        parser.error(f"--parts must be of {', '.join(PARTS)}; got {', '.join(sorted(unknown))}")
    wheel = find_wheel()
    out = output_folder(wheel)
    for torch, python in pairs(arguments.torch.split(), arguments.pythons.split()):
        run_environment(torch, python, parts, wheel, out, arguments.keep)
    if "artifacts" in parts:
        for torch, python in late_readers(out).items():
            run_environment(torch, python, ["artifacts"], wheel, out, arguments.keep)
    raise SystemExit(not write_tables(read_records(out), wheel, TORCH))


if __name__ == "__main__":
    main()
