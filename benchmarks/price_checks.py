"""Doubtful prices of a request: findings in real prices and in corrupted ones; the tables of docs/results/prices.md.

python benchmarks/price_checks.py --data FOLDER                     # print the tables
python benchmarks/price_checks.py --data FOLDER --page docs/results/prices.md

The folder has the ten futures, see `futures.py`. A request is a window of real prices. The statistics that it is
compared with are those of a window that ended one or four years before.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from futures import futures
from markdown import environment, replace_table

from torchcommodity import data

YEARS = (1, 4)  # from the last row of training to that of the request
ROWS = {"daily": 1000, "monthly": 120}  # of a request
TRAINING = {"daily": 2016, "monthly": 180}
YEAR = {"daily": 252, "monthly": 12}
STEP = {"daily": 21, "monthly": 1}  # rows between two requests
SPARSE = 12  # every twelfth request is corrupted: one a year
PAIRS = 12  # of columns that are swapped in a request, at random
MONTHLY = (
    "CRUDE_OIL_BRENT", "NATURAL_GAS_US", "NATURAL_GAS_EUROPE", "COAL_AUSTRALIAN", "GOLD", "COPPER", "ALUMINUM",
    "NICKEL", "MAIZE", "WHEAT_US_HRW", "SOYBEANS", "COFFEE_ARABICA",
)  # fmt: skip
Array = np.ndarray[Any, Any]
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Request:
    """Prices `(T, N)` of a request, and the statistics of the training prices."""

    prices: Array
    dates: Array
    symbols: tuple[str, ...]
    frequency: data.Frequency
    training: tuple[data.PriceStatistics, ...]

    def findings(self, prices: Array, dates: Array) -> set[Key]:
        """Kind, symbol and date of the findings."""
        found = data.inspect_prices(prices, dates, self.symbols, frequency=self.frequency, training=self.training)
        return {(finding.kind, finding.symbol, finding.date) for finding in found}


def panels(folder: Path) -> dict[str, data.Panel]:
    """The prices of the study."""
    return {
        "12 daily spot prices": data.embedded(data.embedded_symbols()).drop_empty_rows(),
        "10 futures": futures(folder, calendar=False, curve=False).drop_empty_rows(),
        "12 monthly prices": data.embedded(MONTHLY, frequency="monthly").drop_empty_rows(),
    }


def requests(panel: data.Panel, years: int) -> Iterator[Request]:
    """Requests that end on successive rows of a panel, with training prices that end `years` before."""
    frequency = panel.frequency
    prices, dates = panel.values.plain().numpy(), panel.dates
    for end in range(TRAINING[frequency] + years * YEAR[frequency], len(panel) + 1, STEP[frequency]):
        trained = end - years * YEAR[frequency]
        before, window = slice(trained - TRAINING[frequency], trained), slice(end - ROWS[frequency], end)
        usable = [n for n in range(prices.shape[1]) if is_usable(prices[before, n]) and is_usable(prices[window, n])]
        if usable:
            symbols, some = tuple(panel.symbols[n] for n in usable), ~np.isnan(prices[window][:, usable]).all(axis=1)
            training = data.price_statistics(panel.select(symbols).between(dates[before][0], dates[before][-1]))
            yield Request(prices[window][some][:, usable], dates[window][some], symbols, frequency, training)


def is_usable(prices: Array) -> bool:
    """Whether a symbol is in the request: it has most of its prices, and those of the last two rows."""
    return bool((prices > 0).mean() > 0.7 and (prices[-2:] > 0).all())


def clean_table(every: dict[str, list[Request]]) -> str:
    """Findings of real prices, by kind."""
    lines = ["| prices | requests | kind | requests with one | different ones | of |", "|---|---:|---|---:|---:|---|"]
    for name, group in every.items():
        counts: dict[str, int] = defaultdict(int)
        different: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for request in group:
            found = request.findings(request.prices, request.dates)
            for kind in {kind for kind, _, _ in found}:
                counts[kind] += 1
            for kind, symbol, date in found:
                different[kind].add((symbol, date))
        for kind in sorted(counts, key=counts.__getitem__, reverse=True):
            symbols = data.summarize_names(sorted({symbol for symbol, _ in different[kind] if symbol}), 3)
            lines.append(
                f"| {name} | {len(group):,} | {kind} | {counts[kind]:,} | {len(different[kind]):,} | {symbols} |"
            )
    return "\n".join(lines)


def scale_last(factor: float) -> Callable[[Array, int], None]:
    """Multiply the last price."""

    def corrupt(prices: Array, n: int) -> None:
        prices[-1, n] *= factor

    return corrupt


def scale_all(prices: Array, n: int) -> None:
    """Another unit, such as cents."""
    prices[:, n] *= 100


def freeze(prices: Array, n: int) -> None:
    """The last ten prices are equal."""
    prices[-10:, n] = prices[-10, n]


def swap(rows: slice) -> Callable[[Array, int, int], None]:
    """Exchange two columns in some rows."""

    def corrupt(prices: Array, i: int, j: int) -> None:
        prices[rows, i], prices[rows, j] = prices[rows, j].copy(), prices[rows, i].copy()

    return corrupt


def copy(prices: Array, i: int, j: int) -> None:
    """A column is a copy of another."""
    prices[:, i] = prices[:, j]


OF_ONE: dict[str, Callable[[Array, int], None]] = {
    "last price times 100": scale_last(100),
    "last price times 10": scale_last(10),
    "last price times 0.1": scale_last(0.1),
    "last price times 0.01": scale_last(0.01),
    "last price times 1.5": scale_last(1.5),
    "last price negative": scale_last(-1),
    "last 10 prices equal": freeze,
    "all prices times 100": scale_all,
}
OF_TWO: dict[str, Callable[[Array, int, int], None]] = {
    "a column copied from another": copy,
    "two columns swapped": swap(slice(None)),
    "two last prices swapped": swap(slice(-1, None)),
}
OF_DATES: dict[str, Callable[[Array], Array]] = {
    "all dates one day later": lambda dates: dates + 1,
    "last date 30 days later": lambda dates: np.append(dates[:-1], dates[-1] + np.timedelta64(30, "D")),
    "dates one row late": lambda dates: np.append(dates[1:], dates[-1] + np.timedelta64(1, "D")),
}


def detected(request: Request, random: Random) -> Iterator[tuple[str, bool]]:
    """Each corruption of a request, and whether it has a finding that the real prices do not have."""
    clean, N = request.findings(request.prices, request.dates), len(request.symbols)
    pairs = random.sample(list(combinations(range(N), 2)), min(PAIRS, N * (N - 1) // 2))
    of_prices = {name: [(corrupt, (n,)) for n in range(N)] for name, corrupt in OF_ONE.items()}
    of_prices |= {name: [(corrupt, pair) for pair in pairs] for name, corrupt in OF_TWO.items()}
    for name, cases in of_prices.items():
        for corrupt, columns in cases:
            prices = request.prices.copy()
            corrupt(prices, *columns)
            yield name, bool(request.findings(prices, request.dates) - clean)
    for name, shift in OF_DATES.items() if request.frequency == "daily" else ():
        dates = shift(request.dates)
        new = {(kind, symbol) for kind, symbol, _ in request.findings(request.prices, dates)}
        yield name, bool(new - {(kind, symbol) for kind, symbol, _ in clean})


def corrupted_table(every: dict[str, list[Request]]) -> str:
    """Share of corrupted requests that have a finding of it."""
    random = Random(0)
    shares: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for name, group in every.items():
        for request in group[::SPARSE]:
            for corruption, found in detected(request, random):
                shares[corruption][name].append(found)
    lines = [f"| corruption | {' | '.join(every)} |", "|---|" + "---:|" * len(every)]
    for corruption, by_panel in shares.items():
        cells = [f"{np.mean(cases):.1%} of {len(cases):,}" if (cases := by_panel[name]) else "" for name in every]
        lines.append(f"| {corruption} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Print the tables, or write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the ten futures")
    parser.add_argument("--page", type=Path, help="page whose tables are replaced; default: print them")
    arguments = parser.parse_args()
    prices = panels(arguments.data)
    every = {
        f"{name}, {years} year{'s' * (years > 1)} on": list(requests(panel, years))
        for years in YEARS
        for name, panel in prices.items()
    }
    setting = environment("Real prices of `data.embedded` and ten futures")
    for name, table in (("clean", clean_table(every)), ("corrupted", f"{corrupted_table(every)}\n\n{setting}")):
        if arguments.page:
            replace_table(arguments.page, name, table)
        else:
            print(table, "\n")


if __name__ == "__main__":
    main()
