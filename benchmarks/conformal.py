"""Does a conformal correction help? The econometric part alone, corrected by its own past, against itself.

python benchmarks/conformal.py FOLDER                     # the folder with the ten futures, see futures.py
python benchmarks/conformal.py FOLDER --out docs/skill.md
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from futures import futures
from markdown import into

from torchcommodity import forecast
from torchcommodity.forecast import Backtest
from torchcommodity.training import HAR_GARCH

NAME = f"{HAR_GARCH} conformal"
BEFORE = 5  # years walked before those that are judged, for the corrections to learn from


def lines(walked: Backtest, years: tuple[int, int], windows: list[int], every: int) -> Iterator[str]:
    """One row per window: the share of the pinball loss that the correction saves, and what its 90 % intervals hold."""
    tables = {}
    for window in windows:
        part = forecast.conformal(walked, window=window, every=every).between(*years)
        tables[window] = (
            forecast.score(part, model=NAME, reference=HAR_GARCH).to_pandas().set_index(["model", "horizon"])
        )
    yield "| rows to learn from | " + " | ".join(f"{h} rows" for h in walked.horizons) + " |"
    yield "|---|" + "---:|" * len(walked.horizons)
    plain = tables[windows[0]].loc[HAR_GARCH]
    yield (
        "| uncorrected | "
        + " | ".join(f"0, held {100 * plain.loc[h].coverage90:.1f} %" for h in walked.horizons)
        + " |"
    )
    for window, table in tables.items():
        yield f"| {window} | " + " | ".join(cell(table, h) for h in walked.horizons) + " |"


def cell(table: pd.DataFrame, horizon: int) -> str:
    ours, plain = table.loc[(NAME, horizon)], table.loc[(HAR_GARCH, horizon)]
    return f"{ours.skill:+.2f} (p {plain.dm_p:.2f}), held {100 * ours.coverage90:.1f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="with the ten futures, see futures.py")
    parser.add_argument("--years", default="2010-2016")
    parser.add_argument("--windows", default="252,504,1260,2520", help="rows to learn from")
    parser.add_argument("--every", type=int, default=21, help="rows between two corrections")
    parser.add_argument("--out", type=Path, help="a Markdown file with the two markers")
    options = parser.parse_args()
    first, last = map(int, options.years.split("-"))
    panel = futures(options.folder).between(None, f"{last}-12-31")
    walked = forecast.backtest(panel, first_year=first - BEFORE, baselines={})
    windows = [int(window) for window in options.windows.split(",")]
    text = "\n".join(lines(walked, (first, last), windows, options.every))
    print(text)
    if options.out:
        into(options.out, "conformal", text)


if __name__ == "__main__":
    main()
