"""Time of the first `make forecast` in a new clone, in steps: `python benchmarks/setup.py`, into docs/results/setup.md.

Three clones: with a C++ compiler; without one, on the library of a wheel in dist/ of this commit; without both. They
share pip's cache, so the first may download what the others take from it; the page says so.
"""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from time import perf_counter

from markdown import environment, replace_table

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "results" / "setup.md"
COMPILERS = re.compile(r"(.*-)?(c\+\+|g\+\+|gcc|cc|clang(\+\+)?)(-[\d.]+)?")
STEPS = {
    "torch": ["make", ".venv/torch"],
    "compile": [".venv/bin/python", "setup.py", "-q", "build_ext"],
    "packages": ["make", ".venv/forecast"],
    "fit, backtest, forecast": ["make", "forecast"],
}


def main() -> None:
    head = ("setting", *(f"{step}, s" for step in STEPS), "all, s", "of which processor, s")
    table = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    forecasts = []
    with tempfile.TemporaryDirectory() as folder:
        without_compiler = hide_compilers(Path(folder, "bin"))
        settings = {"C++ compiler": os.environ["PATH"], "wheel in dist/": without_compiler, "neither": without_compiler}
        for setting, path in settings.items():
            clone = Path(folder, setting.split()[0].strip("/"))
            seconds, processor, forecast = measure(clone, path, with_wheel=setting == "wheel in dist/")
            cells = [setting, *(f"{time:.0f}" for time in (*seconds, sum(seconds), processor))]
            table.append(f"| {' | '.join(cells)} |")
            print(table[-1], flush=True)
            forecasts.append(forecast)
    equal = "the same forecasts" if len(set(forecasts)) == 1 else "DIFFERENT FORECASTS"
    note = f"All three print {equal}. What pip's cache has is not downloaded again. {environment('One run each')}"
    replace_table(PAGE, "setup", "\n".join([*table, "", note]))


def hide_compilers(folder: Path) -> str:
    """A PATH of links to every program but the compilers."""
    folder.mkdir()
    for place in map(Path, os.environ["PATH"].split(os.pathsep)):
        for program in place.iterdir() if place.is_dir() else ():
            if not COMPILERS.fullmatch(program.name) and not (folder / program.name).exists():
                (folder / program.name).symlink_to(program)
    return str(folder)


def measure(clone: Path, path: str, with_wheel: bool) -> tuple[list[float], float, str]:
    """Seconds of each step and of the processors, and the tables of the forecast."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    if with_wheel:
        shutil.copytree(ROOT / "dist", clone / "dist")
    inherited = {name: value for name, value in os.environ.items() if name not in ("CXX", "PYTHONPATH", "VIRTUAL_ENV")}
    inherited |= {"TORCHCOMMODITY_CACHE": str(clone / "cache")}  # the cache of the user may have the fitted model
    seconds, output, before = [], "", os.times()
    for step, command in STEPS.items():
        start = perf_counter()
        skip = step == "compile" and path != os.environ["PATH"]
        if not skip:
            process = subprocess.run(
                command, cwd=clone, env=inherited | {"PATH": path}, stdout=subprocess.PIPE, text=True, check=True
            )
            output = process.stdout
        seconds.append(0.0 if skip else perf_counter() - start)
    after = os.times()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return seconds, processor, output


if __name__ == "__main__":
    main()
