"""What related prices, the season, momentum and futures curves add: the model with them against the one without.

python benchmarks/location.py                                          # embedded prices and random walks
python benchmarks/location.py --futures FOLDER --page docs/results/location.md   # and the ten futures of futures.py
python benchmarks/location.py --curves FILE --page docs/results/location.md      # only spot prices with curves
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from futures import futures
from markdown import environment, format_table, replace_table

from torch_opkit import MetadataTensor
from torchcommodity import data
from torchcommodity.data import horizon_name
from torchcommodity.forecast import Backtest, backtest, score
from torchcommodity.training import FitConfig

WITHOUT = "without"
# the product whose futures curve says where a spot price goes; propane has none
CURVE_OF = {
    "WTI": "CL", "BRENT": "BRN", "HENRY_HUB": "NG", "HEATING_OIL_NYH": "HO", "ULSD_NYH": "HO", "ULSD_USGC": "HO",
    "JET_FUEL_USGC": "HO", "CARB_DIESEL_LA": "HO", "GASOLINE_NYH": "RB", "GASOLINE_USGC": "RB", "RBOB_LA": "RB",
}  # fmt: skip
DAILY, MONTHLY = ((2000, 2016), (2017, 2025)), ((1990, 2009), (2010, 2025))  # years of choice, test years


class Case(NamedTuple):
    """Prices, and the years of choice and of the test."""

    name: str
    panel: data.Panel
    spans: tuple[tuple[int, int], ...]


def embedded_cases() -> Iterator[Case]:
    daily = data.embedded(list(data.embedded_symbols()))
    yield Case("12 spot prices", daily, DAILY)
    yield Case("WTI, Brent, Henry Hub, nine references", data.embedded(), DAILY)
    yield Case("the same without references", data.embedded().with_references(None), DAILY)
    monthly = data.embedded(list(data.embedded_symbols("monthly")), frequency="monthly")
    yield Case("71 monthly prices", monthly, MONTHLY)
    yield Case("12 random walks", random_walks(daily), DAILY)


def momentum_cases() -> Iterator[Case]:
    symbols = list(data.embedded_symbols("monthly"))
    for name, chosen in {"71 monthly prices": symbols, "every third of them": symbols[::3]}.items():
        yield Case(name, data.embedded(chosen, frequency="monthly"), MONTHLY)


def futures_cases(folder: Path) -> Iterator[Case]:
    for name, rules in {
        "ten futures, curve and calendar": {},
        "ten futures, calendar": {"curve": False},
        "ten futures, neither": {"calendar": False},
    }.items():
        yield Case(name, futures(folder, **rules), ((2010, 2016), (2017, 2023)))


def curve_cases(path: Path) -> Iterator[Case]:
    """Curves from a file `date,product,nth,close` of CL, BRN, NG, HO and RB from 2007 on."""
    spans = (2009, 2016), (2017, 2025)
    daily = data.embedded(list(data.embedded_symbols())).with_curve(data.read_curve(path), CURVE_OF)
    yield Case("12 spot prices, 11 with a curve", daily, spans)
    yield Case("the curve one row late", late_curve(daily, 1), spans)
    yield Case("the curve five rows late", late_curve(daily, 5), spans)
    three = {symbol: CURVE_OF[symbol] for symbol in data.embedded().symbols}
    yield Case("WTI, Brent, Henry Hub", data.embedded().with_curve(data.read_curve(path), three), spans)


def late_curve(panel: data.Panel, rows: int) -> data.Panel:
    assert panel.curve is not None
    closes = panel.curve.plain()
    late = torch.cat([torch.full_like(closes[:rows], torch.nan), closes[:-rows]])
    return panel.with_curve(late, dict(zip(panel.symbols, panel.curve_of)))


def random_walks(panel: data.Panel) -> data.Panel:
    """Prices without anything to know: the dates and gaps of the panel, steps with a correlation of 0.7."""
    generator = np.random.default_rng(0)
    common, own = generator.standard_normal((2, *panel.values.shape))
    steps = 0.02 * (np.sqrt(0.7) * common[:, :1] + np.sqrt(0.3) * own)
    prices = np.where(panel.values.plain().isfinite().numpy(), 50 * np.exp(steps.cumsum(0)), np.nan)
    return replace(panel, values=MetadataTensor(torch.from_numpy(prices)), findings=())


def compare(case: Case, setting: str = "location") -> Backtest:
    """The default model, and the same model without a part of its econometric settings."""
    panel = case.panel.between(None, f"{case.spans[-1][1]}-12-31")
    config = FitConfig.for_frequency(panel.frequency)
    without = replace(config, model=replace(config.model, har=replace(config.model.har, **{setting: False})))
    first = case.spans[0][0]
    result, other = (backtest(panel, c, first_year=first, baselines={}) for c in (config, without))
    return replace(
        result,
        quantiles=result.quantiles | {WITHOUT: other.quantiles[other.model]},
        variances=result.variances | {WITHOUT: other.variances[other.model]},
    )


def rows(case: Case, setting: str = "location") -> Iterator[list[str]]:
    result = compare(case, setting)
    for first, last in case.spans:
        frame = score(result.between(first, last), reference=WITHOUT).to_pandas().set_index(["model", "horizon"])
        cells, inside = [], []
        for horizon in result.horizons:
            cells.append(f"{frame.loc[(result.model, horizon)].skill:+.2f} ({frame.loc[(WITHOUT, horizon)].dm_p:.2f})")
            inside.append(f"{100 * frame.loc[(result.model, horizon)].coverage90:.0f}")
        yield [case.name, f"{first} to {last}", *cells, ", ".join(inside)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--futures", type=Path, help="Folder with the ten futures, see futures.py")
    parser.add_argument("--curves", type=Path, help="File with curves of energy futures: only the table of curves")
    parser.add_argument("--page", type=Path, help="Markdown page whose tables are replaced")
    options = parser.parse_args()
    if options.curves:
        tables = {"curves": list(curve_cases(options.curves))}
    else:
        cases = [*embedded_cases(), *(futures_cases(options.futures) if options.futures else ())]
        tables = {name: [case for case in cases if case.panel.frequency == name] for name in ("daily", "monthly")}
        tables["momentum"] = list(momentum_cases())
    for name, chosen in tables.items():
        frequency = chosen[0].panel.frequency
        horizons = FitConfig.for_frequency(frequency).model.har.horizons
        heads = ["prices", "origins", *(horizon_name(h, frequency) for h in horizons), "inside 90 %"]
        table = [row for case in chosen for row in rows(case, "momentum" if name == "momentum" else "location")]
        text = f"{format_table(heads, table)}\n\n{environment(f'torch {torch.__version__}')}"
        print(text)
        if options.page:
            replace_table(options.page, name, text)


if __name__ == "__main__":
    main()
