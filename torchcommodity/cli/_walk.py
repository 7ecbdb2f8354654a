"""Which years a walk-forward tests, and its evidence, kept for the next time."""

import numpy as np
import numpy.typing as npt

from torchcommodity.cli._cache import kept_evidence, key
from torchcommodity.data import Panel
from torchcommodity.forecast import TESTED, backtest
from torchcommodity.report import Evidence, summarize
from torchcommodity.training import LOCAL, Executor, FitConfig, Progress

LEARNT = 5  # years of every symbol before the first test year
MONTH = 20  # rows: a last year with fewer is not tested


def evidence(
    panel: Panel,
    config: FitConfig,
    seed: int,
    progress: Progress | None,
    first: int | None = None,
    executor: Executor = LOCAL,
) -> tuple[Evidence, bool]:
    """Walk a panel forward over its last years; and whether the result was kept from before.

    Symbols younger than `LEARNT` years and one to test are left out and named.

    Raises:
        ValueError: no symbol is old enough.
    """
    taking_part, years = plan(panel, first)
    chosen = panel.select(taking_part).between(None, f"{years[1]}-12-31")
    left_out = tuple(symbol for symbol in panel.symbols if symbol not in taking_part)

    def make() -> Evidence:
        walked = backtest(chosen, config, first=years[0], seed=seed, progress=progress, executor=executor)
        return summarize(walked, left_out)

    return kept_evidence(key(chosen, config, seed, f"walk-forward from {years[0]} without {left_out}"), make)


def plan(panel: Panel, first: int | None = None) -> tuple[list[str], tuple[int, int]]:
    """The symbols old enough, and the first and last test year."""
    years, rows = np.unique(panel.dates.astype("datetime64[Y]").astype(int) + 1970, return_counts=True)
    prices = panel.values.plain().numpy()
    last = int(years[rows > MONTH][-1]) if (rows > MONTH).any() else int(years[-1])
    begins = {s: _year_of_first_price(panel, prices[:, n]) for n, s in enumerate(panel.symbols)}
    old = [s for s, year in begins.items() if year + LEARNT <= (last if first is None else first)]
    if not old:
        raise ValueError(
            f"a walk-forward needs {LEARNT} years of prices before the years that it tests; got {panel.dates[0]} to "
            f"{panel.dates[-1]}"
        )
    earliest = max(begins[s] for s in old) + LEARNT
    return old, (max(earliest, last - TESTED + 1) if first is None else first, last)


def _year_of_first_price(panel: Panel, prices: npt.NDArray[np.float64]) -> int:
    return int(str(panel.dates[(prices > 0).argmax()])[:4])
