"""The table of forecast skill on real prices: PYTHONPATH=. python benchmarks/skill.py --data PATH [--symbols A,B].

Walks forward through the years, then prints two tables: of the years on which settings were chosen, and of the verdict.
"""

import argparse
import time
from pathlib import Path

import pandas as pd
import torch

from torchcommodity import forecast
from torchcommodity.data import Panel

SYMBOLS = "SOYOIL,SOYBEAN,SOYMEAL,CORN,WTI"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared/data/daily.csv.gz")
    parser.add_argument("--symbols", default=SYMBOLS)
    parser.add_argument("--choose", default="2010-2016", help="years on which settings were chosen")
    parser.add_argument("--verdict", default="2017-2023", help="years looked at once")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    long = pd.read_csv(options.data, parse_dates=["date"])
    wide = long[long.symbol.isin(options.symbols.split(","))].pivot(index="date", columns="symbol", values="close")
    panel = Panel.from_frame(wide[options.symbols.split(",")])
    first, last = options.choose.split("-")[0], options.verdict.split("-")[1]
    began = time.perf_counter()
    walked = forecast.backtest(panel.between(None, f"{last}-12-31"), first=int(first), seed=options.seed)
    took = time.perf_counter() - began
    print(f"{options.data.name}: {options.symbols}; {len(panel)} rows")
    print(f"walk-forward in {took:.0f} s on one thread, torch {torch.__version__}")
    print(*walked.fits, sep="\n")
    for title, years in (("choose", options.choose), ("verdict", options.verdict)):
        table(title, walked.between(*map(int, years.split("-"))))


def table(title: str, part: forecast.Backtest) -> None:
    scores = forecast.score(part)
    frame = scores.frame()
    print(f"\n{title}: {scores.first} to {scores.last}; n = {', '.join(map(str, frame.groupby('horizon').n.first()))}")
    for column, text in (
        ("skill", "pinball loss saved against unconditional quantiles, %"),
        ("dm_p", "p of Diebold-Mariano, har-lstm against the row"),
        ("pinball", "mean pinball loss x 1e4"),
        ("coverage90", "coverage of the 90 % interval"),
        ("qlike", "QLIKE of the variance"),
    ):
        wide = frame.pivot(index="model", columns="horizon", values=column).reindex(list(part.quantiles))
        print(f"\n{text}\n{(wide * (1e4 if column == 'pinball' else 1)).round(3).to_string()}")
    better = (
        frame.pivot(index="model", columns="horizon", values="dm").reindex(list(part.quantiles)).drop(index="har-lstm")
    )
    print(
        "\nhar-lstm against the row\n"
        + better.map(lambda t: "same" if t != t else "wins" if t < 0 else "loses").to_string()
    )


if __name__ == "__main__":
    main()
