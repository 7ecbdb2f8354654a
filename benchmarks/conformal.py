"""Conformal correction of the econometric forecast against the uncorrected one.

python benchmarks/conformal.py FOLDER                     # the folder with the ten futures, see futures.py
python benchmarks/conformal.py FOLDER --page docs/results/choices.md
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from futures import futures
from markdown import environment, replace_table

from torchcommodity.data import horizon_name
from torchcommodity.forecast import Backtest, backtest, conformal, score
from torchcommodity.training import HAR_GARCH

CONFORMAL = f"{HAR_GARCH} conformal"
YEARS_BEFORE = 5  # backtest years before the evaluated ones, for the corrections


def table(result: Backtest, years: tuple[int, int], windows: list[int], step: int) -> Iterator[str]:
    """One row per window: percent of the pinball loss that the correction saves, and the coverage of 90 % intervals."""
    scores = {}
    for window in windows:
        part = conformal(result, window=window, step=step).between(*years)
        frame = score(part, model=CONFORMAL, reference=HAR_GARCH).to_pandas()
        scores[window] = frame.set_index(["model", "horizon"])
    yield "| window, rows | " + " | ".join(horizon_name(h, "daily") for h in result.horizons) + " |"
    yield "|---|" + "---:|" * len(result.horizons)
    uncorrected = scores[windows[0]].loc[HAR_GARCH]
    cells = [f"0, coverage {100 * uncorrected.loc[h].coverage90:.1f} %" for h in result.horizons]
    yield f"| uncorrected | {' | '.join(cells)} |"
    for window, frame in scores.items():
        rows = [(frame.loc[(CONFORMAL, h)], frame.loc[(HAR_GARCH, h)].dm_p) for h in result.horizons]
        cells = [f"{row.skill:+.2f} (p {p:.2f}), coverage {100 * row.coverage90:.1f} %" for row, p in rows]
        yield f"| {window} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="Folder with the ten futures, see futures.py")
    parser.add_argument("--years", default="2010-2016", help="Evaluated years")
    parser.add_argument("--windows", default="252,504,1260,2520", help="Rows that a correction is estimated on")
    parser.add_argument("--step", type=int, default=21, help="Rows between corrections")
    parser.add_argument("--page", type=Path, help="Markdown page whose table `conformal` is replaced")
    options = parser.parse_args()
    first, last = map(int, options.years.split("-"))
    panel = futures(options.folder).between(None, f"{last}-12-31")
    result = backtest(panel, first_year=first - YEARS_BEFORE, baselines={})
    windows = [int(window) for window in options.windows.split(",")]
    text = "\n".join(table(result, (first, last), windows, options.step))
    print(text)
    if options.page:
        replace_table(options.page, "conformal", f"{text}\n\n{environment(f'{first} to {last}')}")


if __name__ == "__main__":
    main()
