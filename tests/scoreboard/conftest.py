"""A small task of real prices, and a random walk written with numpy: as a file, and as a function."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from torchcommodity.data import Panel, embedded
from torchcommodity.scoreboard import ForecastFunction, Task, make_task


@pytest.fixture(scope="session")
def task() -> Task:
    panel = embedded(["WTI", "HENRY_HUB"]).between("2010-01-01", "2016-12-31")
    return make_task(panel, first_year=2015)


def random_walk(panel: Panel, horizons: Sequence[int], levels: Sequence[float]) -> np.ndarray:
    """Normal quantiles with the volatility of the last 250 returns."""
    frame = panel.to_pandas()
    result = np.full((len(horizons), len(panel.symbols), len(levels)), np.nan)
    for n, symbol in enumerate(panel.symbols):
        prices = frame[symbol][frame[symbol] > 0]
        deviation = np.log(prices).diff().tail(250).std()
        for i, h in enumerate(horizons):
            result[i, n] = prices.iloc[-1] * np.exp(deviation * np.sqrt(h) * stats.norm.ppf(levels))
    return result


@pytest.fixture(scope="session")
def forecaster() -> ForecastFunction:
    """The same as a function."""
    return random_walk


@pytest.fixture(scope="session")
def submission(task: Task) -> pd.DataFrame:
    """The file of a stranger, who has the prices and the list of forecasts only."""
    prices = embedded(["WTI", "HENRY_HUB"]).to_pandas()
    wanted = task.outcomes()[["origin", "symbol", "horizon", "price"]]
    levels = [f"{level:g}" for level in task.levels]
    rows = []
    for (symbol, origin), _ in wanted.groupby(["symbol", "origin"]):
        known = prices[symbol].loc["2010":origin].dropna()  # type: ignore[misc]
        rows.append((symbol, origin, np.log(known[known > 0]).diff().tail(250).std()))
    wanted = wanted.merge(pd.DataFrame(rows, columns=["symbol", "origin", "deviation"]))
    z = stats.norm.ppf(task.levels)
    spread = (wanted["deviation"] * np.sqrt(wanted["horizon"])).to_numpy()[:, None] * z
    wanted[levels] = wanted["price"].to_numpy()[:, None] * np.exp(spread)
    return wanted.drop(columns=["price", "deviation"])
