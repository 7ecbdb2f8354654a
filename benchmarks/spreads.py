"""How good are forecasts of spreads: of six of embedded spot prices, and of four of futures with their curves.

python benchmarks/spreads.py --page docs/results/spreads.md                    # embedded prices
python benchmarks/spreads.py --curves FILE --page docs/results/spreads.md      # and the futures

FILE has the closes of nearby contracts of energy futures (date,product,nth,close), which are not redistributed.
"""

import argparse
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import reduce
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from markdown import environment, format_table, replace_table

import torchcommodity as tc
from torchcommodity.data import Panel, horizon_name
from torchcommodity.training import _location

SPOT = {
    "BRENT-WTI": "BRENT-WTI",
    "gasoline crack": "crack-gasoline",
    "heating oil crack": "crack-heating-oil",
    "3-2-1 crack": "crack-3-2-1",
    "jet-diesel": {"JET_FUEL_USGC": 42, "ULSD_USGC": -42},
    "ULSD basis": {"ULSD_NYH": 42, "ULSD_USGC": -42},
}
FUTURES = {name: name for name in ("HO-RB", "CL1-CL2", "CL1-CL6", "NG1-NG4")}
FIRST_YEAR = 2017
REGIME = 2022  # war, and diesel and gas as never before


def make_spreads(prices: Panel, legs: Mapping[str, str | dict[str, float]]) -> Panel:
    """The spreads alone."""
    return reduce(Panel.join, (tc.spread(prices, weights, name=name) for name, weights in legs.items()))


def futures(path: Path) -> Panel:
    """Front months of oil, products and gas, with their curves."""
    nearby = pd.read_csv(path).rename(columns={"product": "symbol"})
    nearby = nearby[nearby["symbol"].isin(["CL", "HO", "NG", "RB"])]
    front = tc.to_panel(nearby[nearby["nth"] == 1].drop(columns="nth"))
    return front.with_contracts({code: code for code in front.symbols}).with_curve(tc.data.read_curve(nearby))


def reversion_only() -> ExitStack:
    """A context in which neither related spreads nor the season move a forecast, as where the form was chosen."""
    stack = ExitStack()
    for name in ("moves_alike", "fit_season"):
        function = getattr(_location, name)
        stack.enter_context(patch.object(_location, name, lambda *a, f=function: torch.zeros_like(f(*a))))
    return stack


def unconditional(prices: np.ndarray, dates: np.ndarray, horizon: int, levels: tuple[float, ...]) -> np.ndarray:
    """Quantiles `(T, Q)` of the changes over so many own rows that had ended when the year of a row began."""
    rows = np.flatnonzero(np.isfinite(prices))
    changes, ends = prices[rows[horizon:]] - prices[rows[:-horizon]], dates[rows[horizon:]]
    quantiles = np.full((len(dates), len(levels)), np.nan)
    years = dates.astype("datetime64[Y]")
    for year in np.unique(years):
        if (past := changes[ends < year]).size:
            quantiles[years == year] = np.quantile(past, levels)
    return quantiles


def pinball(outcomes: np.ndarray, quantiles: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Loss of `(T, H)` outcomes, the mean over levels; NaN without an outcome or a forecast."""
    errors = outcomes[..., None] - quantiles
    return np.maximum(levels * errors, (levels - 1) * errors).mean(-1)


def rows(panel: Panel, name: str) -> Iterator[list[str]]:
    """Skill in percent of the loss of unconditional quantiles, and coverage, of each spread; and the mean skill."""
    result = tc.backtest(panel, first_year=FIRST_YEAR, baselines={})
    outcomes, quantiles = (values.numpy() for values in result.price_changes(result.model))
    start, levels = len(panel) - len(result.origins), np.array(result.levels)
    low, high = result.levels.index(0.05), result.levels.index(0.95)
    is_regime = result.origins.astype("datetime64[Y]") == np.datetime64(str(REGIME))
    skills = []
    for n, symbol in enumerate(panel.symbols):
        own, y = panel.values.plain()[:, n].numpy(), outcomes[:, :, n]
        others = [unconditional(own, panel.dates, h, result.levels)[start:] for h in result.horizons]
        loss = pinball(y, quantiles[:, :, n], levels)
        reference = pinball(y, np.stack(others, 1), levels)
        valid = np.isfinite(loss) & np.isfinite(reference)
        skill = 100 * (1 - np.where(valid, loss, 0).sum(0) / np.where(valid, reference, 0).sum(0))
        inside = (quantiles[:, :, n, low] <= y) & (y <= quantiles[:, :, n, high])
        covered = (coverage(inside, valid & chosen[:, None]) for chosen in (np.ones_like(is_regime), is_regime))
        skills.append(skill)
        yield [symbol, name, *(f"{x:.1f}" for x in skill), *covered]
    yield ["**mean**", name, *(f"{x:.1f}" for x in np.mean(skills, 0)), "", ""]


def coverage(inside: np.ndarray, valid: np.ndarray) -> str:
    """Percent of the outcomes `(T, H)` that were inside, at each horizon."""
    return ", ".join(f"{100 * hits[known].mean():.0f}" for hits, known in zip(inside.T, valid.T))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--curves", type=Path, help="File with curves of energy futures")
    parser.add_argument("--page", type=Path, help="Markdown page whose tables are replaced")
    options = parser.parse_args()
    warnings.simplefilter("ignore", tc.data.DataWarning)  # of prices that end in 2025
    spot = make_spreads(tc.data.embedded(list(tc.data.embedded_symbols())), SPOT)
    panels = {"spot": spot}
    if options.curves:
        panels["futures"] = spot.join(make_spreads(futures(options.curves), FUTURES))
    heads = [
        "spread",
        "model",
        *(horizon_name(h, "daily") for h in (5, 21, 63, 126)),
        "inside 90 %",
        f"inside, {REGIME}",
    ]
    for name, panel in panels.items():
        with reversion_only():
            reversion = list(rows(panel, "reversion"))
        table = [row for pair in zip(reversion, rows(panel, "default")) for row in pair]
        text = f"{format_table(heads, table)}\n\n{environment(f'torch {torch.__version__}')}"
        print(text)
        if options.page:
            replace_table(options.page, name, text)


if __name__ == "__main__":
    main()
