"""Roll rules against contract codes and curves of real futures; the tables of docs/results/rolls.md.

python benchmarks/rolls.py --data FOLDER                            # print the tables
python benchmarks/rolls.py --data FOLDER --page docs/results/rolls.md --codes docs/how-to/contracts.md
python benchmarks/rolls.py --data FOLDER --curve curve.csv          # also write the curves for `--curve` of a command
"""

import argparse
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markdown import environment, replace_table

from torchcommodity.data import CONTRACTS, roll_months

PRODUCTS = {
    "WTI": "CL", "BRENT": "BRN", "NATGAS": "NG", "HEATOIL": "HO", "GASOLINE": "RB", "CORN": "C", "WHEAT": "W",
    "SOYBEAN": "S", "SOYMEAL": "SM", "SOYOIL": "BO",
}  # fmt: skip
SHIFTS = (-2, -1, 0, 1, 2)
Array = np.ndarray[Any, Any]


@cache
def _table(folder: Path) -> pd.DataFrame:
    return pd.read_csv(folder / "term_structure.csv.gz", parse_dates=["date"])


def curves(folder: Path) -> pd.DataFrame:
    """The long table of nearby contracts. Heating oil, which the file has twice, once a day and in $/gal."""
    table = _table(folder).copy()
    cents = (table["symbol"] == "HEATOIL") & (table["source"] == "s97")
    table.loc[cents, "close"] /= 100
    return table[~cents | (table["date"] < "2007")]


def agreement(folder: Path) -> pd.DataFrame:
    """Per product and year: rolls in the file (changes of its contract code), by the rule, and on the same row."""
    table = _table(folder)
    fronts = table[(table["nth"] == 1) & table["contract"].notna()]
    years = [_agreement(symbol, front.sort_values("date")) for symbol, front in fronts.groupby("symbol")]
    return pd.concat(years, ignore_index=True)


def _agreement(symbol: str, front: pd.DataFrame) -> pd.DataFrame:
    dates = front["date"].to_numpy().astype("datetime64[D]")[1:]  # the first row cannot show a change
    changes = (front["contract"] != front["contract"].shift()).to_numpy()[1:]
    rule = roll_months(PRODUCTS[symbol], dates, ahead=0) > 0
    rolls = pd.DataFrame({"year": front["date"].dt.year[1:], "file": changes, "rule": rule, "same": changes & rule})
    rolls["differs"] = np.where(changes ^ rule, dates.astype(str), "")
    counts = rolls.groupby("year").agg({"file": "sum", "rule": "sum", "same": "sum", "differs": _join})
    return counts.reset_index().assign(symbol=symbol)


def _join(days: "pd.Series[str]") -> str:
    return " ".join(filter(None, days))


def misfit(folder: Path, symbol: str, shift: int) -> Array:
    """|r_1 - r_2| of nearby contracts on the days of the rule, shifted by some rows; log-return.

    On the day of a roll r_1 = ln F_1(t) - ln F_2(t-1) and r_2 = ln F_2(t) - ln F_3(t-1) are returns of one contract
    each and nearly equal; on the days around it they contain gaps. This tests a rule without contract codes.
    """
    table = curves(folder)
    wide = table[(table["symbol"] == symbol) & (table["source"] == "rtl")].pivot(
        index="date", columns="nth", values="close"
    )
    logs = np.log(wide[[1, 2, 3]].where(wide > 0).to_numpy())
    dates = wide.index.to_numpy().astype("datetime64[D]")
    rows = np.flatnonzero(roll_months(PRODUCTS[symbol], dates, ahead=0)) + shift
    rows = rows[(rows > 0) & (rows < len(dates))]
    moves: Array = np.abs((logs[rows, 0] - logs[rows - 1, 1]) - (logs[rows, 1] - logs[rows - 1, 2]))
    return moves[np.isfinite(moves)]


def lines(folder: Path) -> Iterator[str]:
    """Both tables in Markdown."""
    years = agreement(folder)
    yield "| product | years | rolls in the file | by the rule | on the same row | rows that differ |"
    yield "|---|---|---:|---:|---:|---|"
    for symbol, part in years.groupby("symbol"):
        counts = part[["file", "rule", "same"]].sum()
        span, differ = f"{part['year'].min()}-{part['year'].max()}", _join(part["differs"]) or "none"
        yield f"| {PRODUCTS[symbol]} | {span} | {' | '.join(str(n) for n in counts)} | {differ} |"
    total = years[["file", "rule", "same"]].sum()
    yield f"| all | | {' | '.join(str(n) for n in total)} | |"
    agreeing = years[years["differs"] == ""]
    years["cell"] = years["same"].astype(str) + " of " + years["file"].astype(str)
    table = years.pivot(index="year", columns="symbol", values="cell").rename(columns=PRODUCTS).fillna("")
    yield ""
    yield f"| year | {' | '.join(table.columns)} |"
    yield "|---|" + "---:|" * len(table.columns)
    for year, cells in table.iterrows():
        yield f"| {year} | {' | '.join(cells)} |"
    yield ""
    yield f"{len(agreeing)} of {len(years)} product-years agree on every row."
    yield ""
    yield "| product | rolls | " + " | ".join("on the day" if not s else f"{s:+d} rows" for s in SHIFTS) + " |"
    yield "|---|---:|" + "---:|" * len(SHIFTS)
    for symbol in ("WTI", "BRENT", "NATGAS", "HEATOIL", "GASOLINE"):
        misfits = [misfit(folder, symbol, shift) for shift in SHIFTS]
        cells = (f"{1e4 * np.median(part):.1f}" for part in misfits)
        yield f"| {PRODUCTS[symbol]} | {len(misfits[2])} | {' | '.join(cells)} |"


def rules() -> str:
    """The table of contracts in Markdown."""
    rows = ["| code | product | exchange | months | last trading day | source |", "|---|---|---|---|---|---|"]
    rows += [f"| {p.code} | {p.name} | {p.exchange} | {p.months} | {p.rule} | {p.source} |" for p in CONTRACTS.values()]
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="Folder with term_structure.csv.gz")
    parser.add_argument("--page", type=Path, help="Markdown page whose table `agreement` is replaced")
    parser.add_argument("--codes", type=Path, help="Markdown page whose table `rules` is replaced")
    parser.add_argument("--curve", type=Path, help="CSV file for the curves, one close per day and contract")
    options = parser.parse_args()
    text = "\n".join(lines(options.data))
    print(text)
    if options.curve:
        curves(options.data)[["date", "symbol", "nth", "close"]].to_csv(options.curve, index=False)
    if options.page:
        replace_table(options.page, "agreement", f"{text}\n\n{environment('Published nearby contracts')}")
    if options.codes:
        replace_table(options.codes, "rules", rules())


if __name__ == "__main__":
    main()
