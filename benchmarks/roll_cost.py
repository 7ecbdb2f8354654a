"""Time of a forecast of futures against the same prices without contracts; the table `cost` of docs/results/rolls.md.

python benchmarks/roll_cost.py FOLDER --page docs/results/rolls.md  # a folder with daily.csv.gz
"""

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from futures import futures
from markdown import environment, replace_table
from timing import median_times

from torchcommodity import export, forecast
from torchcommodity.data import Panel

FIT = "2016-01-01"  # first row of the fit
SIZES = [(B, T, N) for N in (1, 10) for T in (300, 1000, 4000) for B in (1, 32)]


def artifacts(panels: dict[str, Panel], folder: Path) -> dict[str, export.Artifact]:
    """A pt2 artifact of each panel."""
    paths = {
        name: export.export(forecast.fit(panel.between(FIT)), folder / f"{name}.pt2") for name, panel in panels.items()
    }
    return {name: export.Artifact.load(path) for name, path in paths.items()}


def lines(folder: Path, runs: int) -> Iterator[str]:
    """The table in Markdown: milliseconds per instance."""
    both = {"spot": futures(folder, calendar=False), "futures": futures(folder, curve=False)}
    yield "| batch | rows | symbols | spot, ms | futures, ms | ratio |"
    yield "|---:|---:|---:|---:|---:|---:|"
    for count in (1, 10):
        symbols = both["spot"].symbols[:count]
        panels = {name: panel.select(symbols).drop_empty_rows() for name, panel in both.items()}
        with TemporaryDirectory() as temporary:
            loaded = artifacts(panels, Path(temporary))
        for B, T, _ in (size for size in SIZES if size[2] == count):
            prices = panels["spot"].values.plain()[-T:].repeat(B, 1, 1)
            days = torch.from_numpy(panels["spot"].dates[-T:].astype(np.int64)).repeat(B, 1)
            times = median_times({name: partial(call, prices, days) for name, call in loaded.items()}, runs)
            spot, rolled = (times[name] / B for name in ("spot", "futures"))
            yield f"| {B} | {T:,} | {count} | {spot:.2f} | {rolled:.2f} | {rolled / spot:.2f} |"
    yield ""
    yield environment("har-garch as pt2, milliseconds per instance, medians on one thread")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="Folder with daily.csv.gz")
    parser.add_argument("--runs", type=int, default=15, help="Timed calls of each artifact")
    parser.add_argument("--page", type=Path, help="Markdown page whose table `cost` is replaced")
    options = parser.parse_args()
    torch.set_num_threads(1)
    text = "\n".join(lines(options.folder, options.runs))
    print(text)
    if options.page:
        replace_table(options.page, "cost", text)


if __name__ == "__main__":
    main()
