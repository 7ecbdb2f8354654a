"""How good are forecasts of spreads: of six of embedded spot prices, and of four of futures with their curves.

python benchmarks/spreads.py --page docs/results/spreads.md                    # embedded prices
python benchmarks/spreads.py --joint --page docs/results/spreads.md            # and joint paths of their legs
python benchmarks/spreads.py --curves FILE --page docs/results/spreads.md      # and the futures

FILE has the closes of nearby contracts of energy futures (date,product,nth,close), which are not redistributed.
"""

import argparse
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
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

SPOT = {  # barrels
    "BRENT-WTI": {"BRENT": 1, "WTI": -1},
    "gasoline crack": {"GASOLINE_NYH": 1, "WTI": -1},
    "heating oil crack": {"HEATING_OIL_NYH": 1, "WTI": -1},
    "3-2-1 crack": {"GASOLINE_NYH": 2 / 3, "HEATING_OIL_NYH": 1 / 3, "WTI": -1},
    "jet-diesel": {"JET_FUEL_USGC": 1, "ULSD_USGC": -1},
    "ULSD basis": {"ULSD_NYH": 1, "ULSD_USGC": -1},
}
GALLONS = {"$/bbl": 1, "$/gal": 42}  # in a barrel of the unit
FUTURES = {name: name for name in ("HO-RB", "CL1-CL2", "CL1-CL6", "NG1-NG4")}
FIRST_YEAR = 2017
REGIME = 2022  # war, and diesel and gas as never before
STEP = 10  # rows from one origin of joint paths to the next
PATHS = 1000


def make_spreads(prices: Panel, legs: Mapping[str, str | dict[str, float]], unit: str | None = None) -> Panel:
    """The spreads alone."""
    return reduce(Panel.join, (tc.spread(prices, weights, name=name, unit=unit) for name, weights in legs.items()))


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


def evaluate(
    result: tc.forecast.Backtest, panel: Panel, n: int, quantiles: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Skill (H,) of quantiles `(T, H, Q)` of the changes of spread n, in percent of the loss of unconditional ones.

    And masks `(T, H)`: which outcomes were inside the 90 % interval, and which count.
    """
    own, levels = panel.values.plain()[:, n].numpy(), np.array(result.levels)
    y = result.price_changes(result.model)[0][:, :, n].numpy()
    start = len(panel) - len(result.origins)
    others = [unconditional(own, panel.dates, h, result.levels)[start:] for h in result.horizons]
    loss, reference = pinball(y, quantiles, levels), pinball(y, np.stack(others, 1), levels)
    valid = np.isfinite(loss) & np.isfinite(reference)
    skill = 100 * (1 - np.where(valid, loss, 0).sum(0) / np.where(valid, reference, 0).sum(0))
    low, high = result.levels.index(0.05), result.levels.index(0.95)
    return skill, (quantiles[..., low] <= y) & (y <= quantiles[..., high]), valid


def rows(panel: Panel, name: str) -> Iterator[list[str]]:
    """Skill in percent of the loss of unconditional quantiles, and coverage, of each spread; and the mean skill."""
    result = tc.backtest(panel, first_year=FIRST_YEAR, baselines={})
    quantiles = result.price_changes(result.model)[1].numpy()
    is_regime = result.origins.astype("datetime64[Y]") == np.datetime64(str(REGIME))
    skills = []
    for n, symbol in enumerate(panel.symbols):
        skill, inside, valid = evaluate(result, panel, n, quantiles[:, :, n])
        covered = (coverage(inside, valid & chosen[:, None]) for chosen in (np.ones_like(is_regime), is_regime))
        skills.append(skill)
        yield [symbol, name, *(f"{x:.1f}" for x in skill), *covered]
    yield ["**mean**", name, *(f"{x:.1f}" for x in np.mean(skills, 0)), "", ""]


def joint_rows(prices: Panel, panel: Panel) -> Iterator[list[str]]:
    """The same of spreads of joint paths of the legs, and of the spread as a symbol, from the same origins."""
    result = tc.backtest(panel, first_year=FIRST_YEAR, baselines={})
    direct = result.price_changes(result.model)[1].numpy()
    skills = []
    for n, symbol in enumerate(panel.symbols):
        joint = joint_quantiles(prices, SPOT[symbol], result)
        own = np.where(np.isnan(joint), np.nan, direct[:, :, n])
        for name, quantiles in (("joint paths", joint), ("a symbol", own)):
            skill, inside, valid = evaluate(result, panel, n, quantiles)
            skills.append(skill)
            yield [symbol, name, *(f"{x:.1f}" for x in skill), coverage(inside, valid)]
    for name, some in (("joint paths", skills[::2]), ("a symbol", skills[1::2])):
        yield ["**mean**", name, *(f"{x:.1f}" for x in np.mean(some, 0)), ""]


def joint_quantiles(prices: Panel, weights: Mapping[str, float], result: tc.forecast.Backtest) -> np.ndarray:
    """Quantiles `(T, H, Q)` of the change of a spread by joint paths of its legs, at every `STEP`-th origin."""
    legs = prices.select(weights).with_references(None)
    values = legs.values.plain()
    complete = (values > 0).all(1, keepdim=True)  # the rows of the spread, of which each leg has one then
    legs = replace(legs, values=torch.where(complete, values, torch.nan)).drop_empty_rows()
    factors = torch.tensor([weight * GALLONS[unit] for weight, unit in zip(weights.values(), legs.units)]).double()
    quantiles = np.full((len(result.origins), len(result.horizons), len(result.levels)), np.nan)
    rows, levels = [h - 1 for h in result.horizons], torch.tensor(result.levels, dtype=torch.double)
    year = None
    for origin in range(0, len(result.origins), STEP):
        day = result.origins[origin]
        if day not in legs.dates:
            continue
        if day.astype("datetime64[Y]") != year:
            year = day.astype("datetime64[Y]")
            forecaster = tc.fit(legs, through=year.astype("datetime64[D]") - 1)
        past = legs.between(None, day)
        change = (forecaster.simulate(past, PATHS).prices.plain()[:, rows] - past.values.plain()[-1]) @ factors
        quantiles[origin] = change.quantile(levels, 0).T.numpy()
    return quantiles


def coverage(inside: np.ndarray, valid: np.ndarray) -> str:
    """Percent of the outcomes `(T, H)` that were inside, at each horizon."""
    return ", ".join(f"{100 * hits[known].mean():.0f}" for hits, known in zip(inside.T, valid.T))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--curves", type=Path, help="File with curves of energy futures")
    parser.add_argument("--page", type=Path, help="Markdown page whose tables are replaced")
    parser.add_argument("--joint", action="store_true", help="Joint paths of the legs too, which takes minutes")
    options = parser.parse_args()
    warnings.simplefilter("ignore", tc.data.DataWarning)  # of prices that end in 2025
    prices = tc.data.embedded(list(tc.data.embedded_symbols()))
    spot = make_spreads(prices, SPOT, "$/bbl")
    panels = {"spot": spot}
    if options.curves:
        panels["futures"] = spot.join(make_spreads(futures(options.curves), FUTURES))
    heads = ["spread", "model", *(horizon_name(h, "daily") for h in (5, 21, 63, 126)), "inside 90 %"]
    where = environment(f"torch {torch.__version__}")  # before a page is written
    tables = {}
    for name, panel in panels.items():
        with reversion_only():
            reversion = list(rows(panel, "reversion"))
        table = [row for pair in zip(reversion, rows(panel, "default")) for row in pair]
        tables[name] = format_table([*heads, f"inside, {REGIME}"], table)
    if options.joint:
        tables["joint"] = format_table(heads, list(joint_rows(prices, spot)))
    for name, table in tables.items():
        print(f"{table}\n\n{where}")
        if options.page:
            replace_table(options.page, name, f"{table}\n\n{where}")


if __name__ == "__main__":
    main()
