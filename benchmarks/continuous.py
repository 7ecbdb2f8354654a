"""Front months built from single contracts against published ones; the tables of docs/results/continuous.md.

python benchmarks/continuous.py --data FOLDER                       # print the tables
python benchmarks/continuous.py --data FOLDER --page docs/results/continuous.md
"""

import argparse
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from markdown import environment, replace_table
from rolls import PRODUCTS

from torchcommodity.data import ContractPrices, Panel, roll_months

CODED = ("CORN", "WHEAT", "SOYBEAN", "SOYMEAL", "SOYOIL", "HEATOIL")  # with contract codes in the file
ENERGIES = ("WTI", "BRENT", "NATGAS", "HEATOIL", "GASOLINE")  # without
NEAR = 5  # rows around the day of the rule on which a roll is looked for
Array = np.ndarray[Any, Any]


class Agreement(NamedTuple):
    """A rebuilt series against the published one: counts of rows and rolls, and the largest differences."""

    rows: int
    equal: int  # rows with the published price
    without_rule: int  # likewise, if the expiry of the contracts is not known
    nearby: int  # prices of the contracts 2 and 3
    nearby_equal: int
    rolls: int  # in the published codes
    same_rolls: int  # on the same row
    ratio_error: float  # adjusted log-returns against those of the contracts held
    panama_error: float  # adjusted differences, in units of the price


@cache
def table(folder: Path) -> pd.DataFrame:
    """Nearby contracts, by day and number."""
    return pd.read_csv(folder / "term_structure.csv.gz", parse_dates=["date"])


def rebuild(folder: Path, symbol: str) -> Agreement:
    """Take the published nearby contracts apart by their codes, build the front month again, and compare."""
    source = table(folder)
    source = source[(source["symbol"] == symbol) & source["contract"].notna()]
    contracts = source[["date", "contract", "close"]].assign(symbol=symbol)
    prices = ContractPrices.from_pandas(contracts)
    panel = prices.continuous()
    unknown = ContractPrices.from_pandas(contracts, contracts={symbol: None}).continuous()
    published = source.pivot(index="date", columns="nth", values="close").reindex(panel.dates)
    codes = source[source["nth"] == 1].set_index("date")["contract"].sort_index()
    changes = (codes != codes.shift()).to_numpy()[1:]
    rolls = np.diff(panel.deliveries[np.isin(panel.dates, codes.index.to_numpy()), 0]).astype(int) > 0
    front, curve = panel.values[:, 0].numpy(), panel.curve[:, 0].numpy()
    known = published[[2, 3]].notna().to_numpy()
    return Agreement(
        int(published[1].notna().sum()),
        int((front == published[1]).sum()),
        int((unknown.values[:, 0].numpy() == published[1]).sum()),
        int(known.sum()),
        int((curve[:, 1:3] == published[[2, 3]].to_numpy())[known].sum()),
        int(changes.sum()),
        int((changes & rolls).sum()),
        *_adjusted_errors(prices, panel),
    )


def _adjusted_errors(prices: ContractPrices, panel: Panel) -> tuple[float, float]:
    """Adjusted series against a plain reference: each contract's own change, on the rows on which it is held."""
    rows = {"date": prices.dates, "contract": prices.contracts, "close": prices.prices}
    wide = pd.DataFrame(rows).pivot(index="date", columns="contract", values="close")
    held = np.searchsorted(prices.deliveries, panel.deliveries[:, 0])
    before, rows = wide.shift().to_numpy(), np.arange(len(panel))
    now, previous = wide.to_numpy()[rows, held], before[rows, held]
    ratio = prices.continuous(adjustment="ratio").values[:, 0].numpy()
    panama = prices.continuous(adjustment="panama").values[:, 0].numpy()
    returns = np.diff(np.log(ratio)) - np.log(now / previous)[1:]
    changes = np.diff(panama) - (now - previous)[1:]
    return float(np.nanmax(np.abs(returns))), float(np.nanmax(np.abs(changes)))


class Detected(NamedTuple):
    """The rolls of the rule, and the rows on which the nearby contracts switch by their prices alone."""

    distance: Array  # of the row with the most evidence from the rule's row
    clear: Array  # whether that row has more than twice the evidence of any other row nearby


def detected_rolls(folder: Path, symbol: str) -> Detected:
    """Look for each roll of the rule in the nearby contracts, without codes.

    If the contracts switch on row t, ln F_1(t) - ln F_2(t-1) and ln F_2(t) - ln F_3(t-1) are returns of single
    contracts and nearly equal; if not, ln F_n(t) - ln F_n(t-1) are, for n = 1, 2, 3. Evidence for a switch is what the
    first pair differs less than the others. There is none where the curve is straight.
    """
    source = table(folder)
    source = source[(source["symbol"] == symbol) & (source["source"] == "rtl")]
    wide = source.pivot(index="date", columns="nth", values="close")[[1, 2, 3]]
    log, dates = np.log(wide.where(wide > 0).to_numpy()), wide.index.to_numpy().astype("datetime64[D]")
    stays = np.abs(np.diff(log[1:] - log[:-1], axis=1)).sum(axis=1)
    switches = np.abs(np.diff(log[1:, :2] - log[:-1, 1:], axis=1))[:, 0]
    evidence = np.append(0.0, np.nan_to_num(stays - switches))
    rows = np.flatnonzero(roll_months(PRODUCTS[symbol], dates, ahead=0))
    rows = rows[(rows > NEAR) & (rows < len(dates) - NEAR)]
    nearby = evidence[rows[:, None] + np.arange(-NEAR, NEAR + 1)]
    best, second = np.sort(nearby, axis=1)[:, [-1, -2]].T
    return Detected(nearby.argmax(axis=1) - NEAR, best > 2 * np.maximum(second, 0))


def lines(folder: Path) -> Iterator[str]:
    """Both tables in Markdown."""
    yield (
        "| product | equal prices | if the expiry is not known | contracts 2 and 3 | rolls on the same row "
        "| error of ratio returns | error of Panama differences |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for symbol in CODED:
        part = rebuild(folder, symbol)
        cells = (
            _share(part.equal, part.rows),
            _share(part.without_rule, part.rows),
            _share(part.nearby_equal, part.nearby),
            f"{part.same_rolls} of {part.rolls}",
            f"{part.ratio_error:.0e}",
            f"{part.panama_error:.0e}",
        )
        yield f"| {PRODUCTS[symbol]} | {' | '.join(cells)} |"
    yield ""
    yield "| product | rolls | on the rule's row | clear rolls | on the rule's row |"
    yield "|---|---:|---:|---:|---:|"
    for symbol in ENERGIES:
        same, clear = (found := detected_rolls(folder, symbol)).distance == 0, found.clear
        counts = (len(same), same.sum(), clear.sum(), (same & clear).sum())
        yield f"| {PRODUCTS[symbol]} | {' | '.join(map(str, counts))} |"


def _share(part: int, whole: int) -> str:
    return f"all but {whole - part} of {whole:,}" if part < whole else f"all {whole:,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="Folder with term_structure.csv.gz")
    parser.add_argument("--page", type=Path, help="Markdown page whose table `agreement` is replaced")
    options = parser.parse_args()
    text = "\n".join(lines(options.data))
    print(text)
    if options.page:
        replace_table(options.page, "agreement", f"{text}\n\n{environment('Published nearby contracts')}")


if __name__ == "__main__":
    main()
