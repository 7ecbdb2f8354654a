"""Measure every table of the results again, from one commit: `make results`.

python benchmarks/results.py --list              # the parts, their minutes, and what this machine lacks for them
python benchmarks/results.py                     # every part that this machine can run
python benchmarks/results.py speed indicators    # some

A timed part waits until the machine is quiet. A part that fails does not stop the others. Each writes to
out/results/PART.log, and its minutes and the load before and after into the table `parts` of docs/results/README.md.
"""

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import torch
from futures import CONTRACTS
from markdown import commit, date, format_table, number, processor, read_table, replace_table

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "out" / "results"
README = ROOT / "docs" / "results" / "README.md"
DATA = Path(os.environ.get("TORCHCOMMODITY_SHARED") or "../shared", "data").resolve()  # prices not redistributed
QUIET = 0.3  # load average of a machine on which nothing else runs
PATIENCE = 300  # seconds until the load of the part before has left the average
HEADS = ("part", "page", "needs", "minutes", "last run")


class Part:
    """Commands for bash from the root of the repository; those of benchmarks/ are given the page to write into."""

    def __init__(self, page: str, *commands: str, needs: str = "", timed: bool = False) -> None:
        self.page = os.path.relpath(README.parent / f"{page}.md", ROOT)
        benchmark = f"python benchmarks/{{}} --page {self.page}".format
        self.commands = "\n".join(line[2:] if line.startswith("$ ") else benchmark(line) for line in commands)
        self.needs, self.timed = needs.split(), timed


SKILL = "skill.py --futures $DATA --years 2017-2023 --reference har"
FUTURES = "daily.csv.gz term_structure.csv.gz"
SYMBOLS = "--symbols $SYMBOLS --contracts $CONTRACTS"
PORTFOLIO = f"portfolio --data $OUT/prices.csv {SYMBOLS} --curve $OUT/curve.csv --first-year 2017"
PARTS = {
    "speed": Part("speed", "run.py --readme README.md", "second_derivatives.py", "loaded.py", timed=True),
    "indicators": Part("indicators", "indicators.py --readme README.md", timed=True),
    "accessors": Part("../../opkit/docs/kernels/accessors", "accessors.py", timed=True),
    "roll-cost": Part("rolls", "roll_cost.py $DATA", needs="daily.csv.gz", timed=True),
    "exports": Part("exports", "exports.py", timed=True),
    "serving": Part(
        "serving",
        "serving.py table --seconds 3",
        "serving.py crashes --seconds 30 --interval 12",
        needs="litserve",
        timed=True,
    ),
    "batch": Part("batch", "batch.py", timed=True),
    "reading": Part(
        "reading",
        "reading.py",
        "$ OMP_NUM_THREADS=1 python benchmarks/wide_panel.py --page docs/results/reading.md",
        timed=True,
    ),
    "optimize": Part(
        "optimize",
        "$ torchcommodity optimize --out $OUT",
        "optimize.py $OUT/optimize.csv --name table",
        f"$ torchcommodity optimize --data $DATA/daily.csv.gz {SYMBOLS} --batch 16 --calls 40 --out $OUT",
        "optimize.py $OUT/optimize.csv --name futures",
        needs="daily.csv.gz",
        timed=True,
    ),
    "setup": Part("setup", "$ python benchmarks/setup.py", needs="wheel", timed=True),
    "cuda": Part("cuda", "$ make --keep-going test-cuda", needs="GPU", timed=True),
    "cuda-model": Part("cuda", "cuda_resources.py", "cuda_model.py", needs="nvcc cuobjdump"),  # without a GPU
    "versions": Part("versions", "$ make test-versions", needs="wheel"),
    "talib": Part("talib", "agreement.py"),
    "check": Part("../../opkit/docs/results/check", "../opkit/benchmarks/check_corpus.py --slow"),
    "diagnose": Part("../../opkit/docs/results/diagnose", "../opkit/benchmarks/diagnose_corpus.py"),
    "embedded": Part("skill", "skill.py --name embedded --readme README.md"),
    "skill": Part(
        "skill",
        f"{SKILL} --name curve",
        f"{SKILL} --no-curve --name calendar",
        f"{SKILL} --no-calendar --name spot",
        "choices.py $DATA --ablation",
        needs=FUTURES,
    ),
    "statistical": Part(
        "skill",
        f"{SKILL} --baselines autoarima,autoets,theta --every 5 --name statistical",
        needs=f"{FUTURES} statsforecast",
    ),
    "location": Part(
        "location",
        "location.py --futures $DATA",
        "location.py --curves $DATA/energy_curves.csv.gz",
        needs=f"{FUTURES} energy_curves.csv.gz",
    ),
    "ranges": Part("ranges", "ranges.py $DATA", needs="bars.csv.gz energy_curves.csv.gz"),
    "spreads": Part("spreads", "spreads.py --joint --curves $DATA/energy_curves.csv.gz", needs="energy_curves.csv.gz"),
    "choices": Part("choices", "choices.py $DATA", "conformal.py $DATA", needs=FUTURES),
    "networks": Part("choices", "choices.py $DATA --networks", needs=FUTURES),
    "scoreboard": Part(
        "scoreboard",
        "scoreboard.py --track daily",
        "scoreboard.py --track monthly --without autoarima",
        needs="statsforecast",
    ),
    "monthly": Part(
        "monthly",
        "skill.py --data monthly --symbols all --years 2010-2026 --name test",
        "monthly_choices.py --name choice",
    ),
    "covariates": Part("covariates", "covariates.py --futures $DATA", "covariates.py --name spot", needs=FUTURES),
    "risk": Part("risk", "tails.py $DATA", needs=FUTURES),
    "portfolio": Part(
        "portfolio",
        """$ zcat $DATA/daily.csv.gz | awk -F, 'NR == 1 || $1 >= "2000"' > $OUT/prices.csv""",
        """$ zcat $DATA/term_structure.csv.gz | awk -F, 'NR == 1 || $7 == "rtl"' > $OUT/curve.csv""",
        f"$ torchcommodity {PORTFOLIO} --out $OUT/long",
        f"$ torchcommodity {PORTFOLIO} --long-short --out $OUT/short",
        "portfolio.py $OUT/long $OUT/short --name futures",
        "$ torchcommodity portfolio --first-year 2020 --out $OUT/embedded",
        "$ torchcommodity portfolio --first-year 2020 --long-short --out $OUT/embedded-short",
        "portfolio.py $OUT/embedded $OUT/embedded-short --name embedded",
        needs=FUTURES,
    ),
    "paths": Part(
        "scenarios", "joint_paths.py $DATA --years 2017-2023", "joint_paths.py --years 2017-2025", needs=FUTURES
    ),
    "generator": Part(
        "scenarios",
        "$ python benchmarks/rolls.py --data $DATA --curve $OUT/curve.csv",
        "scenarios.py $DATA/daily.csv.gz --curve $OUT/curve.csv",
        needs=FUTURES,
    ),
    "prices": Part("prices", "price_checks.py --data $DATA", needs=FUTURES),
    "rolls": Part("rolls", "rolls.py --data $DATA --codes docs/how-to/contracts.md", needs="term_structure.csv.gz"),
    "continuous": Part("continuous", "continuous.py --data $DATA", needs="term_structure.csv.gz"),
    "foundation": Part("../how-to/foundation-models", "foundation.py", needs="fracast"),
}


def lack(need: str) -> str:
    """What this machine lacks; empty if it has it."""
    if need == "GPU":
        return "" if torch.cuda.is_available() else "no GPU"
    if need in ("nvcc", "cuobjdump"):
        return "" if shutil.which(need) else f"no {need} in PATH"
    if need == "wheel":
        built = ROOT / "dist" / "commit"
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
        return "" if built.exists() and built.read_text().strip() == head else "no wheel of this commit (make wheel)"
    if need.endswith(".gz"):
        return "" if (DATA / need).exists() else f"no {need} in {DATA}"
    return "" if importlib.util.find_spec(need) else f"{need} is not installed"


def run(name: str) -> bool:
    """Run the commands of a part, with their output in its log, up to the first that fails; whether all passed."""
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    variables = {
        "MAKEFLAGS": "",  # PARTS of this command are none of another's
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "DATA": str(DATA),
        "OUT": str(folder),
        "SYMBOLS": ",".join(CONTRACTS),
        "CONTRACTS": ",".join(f"{symbol}={code}" for symbol, code in CONTRACTS.items()),
    }
    with (OUT / f"{name}.log").open("w") as log:
        command = ["bash", "-exo", "pipefail", "-c", PARTS[name].commands]
        return not subprocess.run(command, cwd=ROOT, env=os.environ | variables, stdout=log, stderr=log).returncode


def write_parts(last_runs: dict[str, list[str]]) -> None:
    """Write the table of parts, with the minutes and the last run of each."""
    rows = []
    for name, part in PARTS.items():
        link = os.path.relpath(ROOT / part.page, README.parent)
        rows.append(
            [f"`{name}`", f"[{Path(link).stem}]({link})", ", ".join(part.needs), *last_runs.get(name, ["", ""])]
        )
    replace_table(README, "parts", format_table(HEADS, rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"Of {', '.join(PARTS)}; default: all")
    parser.add_argument("--list", action="store_true", help="Print the parts and measure nothing")
    parser.add_argument("--force", action="store_true", help="Measure on a busy machine, or with changes not committed")
    arguments = parser.parse_args()
    names = arguments.parts or list(PARTS)
    if unknown := ", ".join(name for name in names if name not in PARTS):
        parser.error(f"expected parts of {', '.join(PARTS)}; got {unknown}")
    known = read_table(README.read_text().partition("<!-- parts -->")[2])[1]
    last_runs = {row[0].strip("`"): row[-2:] for row in known}
    missing = {name: "; ".join(filter(None, map(lack, PARTS[name].needs))) for name in names}
    for name in names:
        estimate, last_run = last_runs.get(name, ["?", ""])
        print(f"{name:12} {estimate:>5} min  {f'cannot run: {missing[name]}' if missing[name] else last_run}")
    runnable = [name for name in names if not missing[name]]
    total = sum(float(number(last_runs[name][0]) or 0) for name in runnable if name in last_runs)
    print(f"{len(runnable)} of {len(names)} parts, about {total:.0f} min; logs in {OUT}", flush=True)
    if arguments.list:
        return
    start, load = commit(), os.getloadavg()[0]
    if start.endswith("-dirty") and not arguments.force:
        raise SystemExit("results: expected a tree without changes, so that a commit names what was measured; --force")
    if any(PARTS[name].timed for name in runnable) and load > QUIET and not arguments.force:
        raise SystemExit(f"results: expected a quiet machine, with a load under {QUIET}; got {load:.1f}; --force")
    failed = []
    for name in runnable:
        deadline = time.monotonic() + PATIENCE
        while PARTS[name].timed and os.getloadavg()[0] > QUIET and time.monotonic() < deadline and not arguments.force:
            time.sleep(5)
        before, began = os.getloadavg()[0], time.monotonic()
        print(f"{name}: load {before:.1f} ...", end=" ", flush=True)
        passed = run(name)
        minutes = f"{(time.monotonic() - began) / 60:.1f}"
        print(f"{'' if passed else f'FAILED, see {OUT}/{name}.log; '}{minutes} min", flush=True)
        if commit() != start:
            raise SystemExit(f"results: expected commit {start} to the end; got {commit()}")
        if passed:
            busy = ", **busy**" if PARTS[name].timed and before > QUIET else ""
            machine = f"{processor()}, {os.cpu_count()} cores"
            loads = f"load {before:.1f} to {os.getloadavg()[0]:.1f}{busy}"
            last_runs[name] = [minutes, f"{date()}, {start}, {machine}, {loads}"]
            write_parts(last_runs)
        else:
            failed.append(name)
    skipped = "; ".join(f"{name} ({missing[name]})" for name in names if missing[name])
    print(f"failed: {', '.join(failed) or 'none'}\nnot run: {skipped or 'none'}")
    print("Sentences around the tables are not measured: read them again beside git diff.")
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
