"""What covariates add to the default forecaster, out of sample, each used from the day of its publication.

python benchmarks/covariates.py                                       # embedded prices: gas and heating oil for crude
python benchmarks/covariates.py --futures FOLDER --page docs/results/covariates.md      # VIX, dollar, ten-year yield
python benchmarks/covariates.py --file stocks.csv --lag 5D            # a file of your own: one column, or `published`
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from futures import futures
from markdown import environment, replace_table

from torchcommodity import data
from torchcommodity.data import Covariates, Panel, horizon_name
from torchcommodity.forecast import Backtest, backtest, score
from torchcommodity.training import WITHOUT_COVARIATES

SPANS = ((2010, 2016), (2017, 2023))


def market_covariates(folder: Path) -> dict[str, Covariates]:
    """The VIX, the Federal Reserve's broad dollar index and its ten-year yield, with the lags of their publishers.

    The VIX closes two hours after the futures settle; H.15 comes on the next business day; H.10 on the Monday after the
    week, so that a Monday's value is seven days old.
    """
    closes = pd.read_csv(folder / "daily.csv.gz", parse_dates=["date"])
    series = {name: closes[closes.symbol == name].set_index("date").close for name in ("VIX", "USD_BROAD", "UST10Y")}
    vix, dollar, bond = (values.rename(name) for name, values in series.items())
    single = {
        "VIX, as a variance": data.to_covariates(vix, lag="1B", transform="volatility"),
        "VIX squared, relative to its past": data.to_covariates(vix.pow(2), lag="1B"),
        "volatility of the dollar index": data.to_covariates(dollar, lag="7D", transform="changes"),
        "volatility of the ten-year yield": data.to_covariates(bond, lag="1B", transform="changes"),
    }
    first, _, third, fourth = single.values()
    return single | {"VIX, dollar and yield": first.join(third).join(fourth)}


def spot_covariates() -> dict[str, Covariates]:
    """Spot prices of other energies, published by the EIA some days later."""
    names = {"volatility of natural gas": ["HENRY_HUB"], "volatility of heating oil": ["HEATING_OIL_NYH"]}
    return {
        name: data.to_covariates(data.embedded(symbols), lag="5B", transform="changes")
        for name, symbols in names.items()
    }


def row(name: str, result: Backtest) -> str:
    """Percent of the loss of the model without covariates that they save, and the p-value of the difference."""
    frame = score(result, reference=WITHOUT_COVARIATES).to_pandas().set_index(["model", "horizon"])
    cells = [
        f"{frame.loc[(result.model, h), 'skill']:+.2f} (p {frame.loc[(WITHOUT_COVARIATES, h), 'dm_p']:.2f})"
        for h in result.horizons
    ]
    return f"| {name} | {' | '.join(cells)} |"


def weights(name: str, result: Backtest, terms: tuple[str, ...]) -> str:
    """Mean coefficient of the covariates over the years, per horizon."""
    count = len(terms)
    mean = sum(mix[:, -1 - count : -1].sum(1) for mix in result.mix.values()) / len(result.mix)
    return f"| {name} | {' | '.join(f'{x:.2f}' for x in mean)} |"


def tables(prices: Panel, cases: dict[str, Covariates]) -> Iterator[str]:
    results = {
        name: backtest(prices, covariates=covariates, first_year=SPANS[0][0], baselines={})
        for name, covariates in cases.items()
    }
    horizons = next(iter(results.values())).horizons
    head = f"| covariates | {' | '.join(horizon_name(h, 'daily') for h in horizons)} |\n|---|{'---:|' * len(horizons)}"
    for first, last in SPANS:
        rows = [row(name, result.between(first, last)) for name, result in results.items()]
        yield "\n".join([f"**{', '.join(prices.symbols)}, {first} to {last}.**\n", head, *rows])
    rows = [weights(name, result, cases[name].terms) for name, result in results.items()]
    yield "\n".join(["**Coefficients**, means over the years.\n", head, *rows])
    yield "\n".join(checks(prices, cases))


def checks(prices: Panel, cases: dict[str, Covariates]) -> Iterator[str]:
    yield "| covariate | known | transform | first row | rows | median age, days | a join by date looks ahead |"
    yield "|---|---|---|---|---:|---:|---:|"
    reports = dict.fromkeys(report for covariates in cases.values() for report in covariates.check(prices.dates))
    for r in reports:
        yield f"| {r.name} | {r.rule} | {r.transform} | {r.first} | {r.rows:,} | {r.age:g} | {r.unpublished:,} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--futures", type=Path, help="Folder with the ten futures and the market covariates")
    parser.add_argument("--file", type=Path, help="Covariates of your own")
    parser.add_argument("--lag", help="Publication lag of --file")
    parser.add_argument("--transform", default="level", help="Transform of --file")
    parser.add_argument("--page", type=Path, help="Markdown page whose table is replaced")
    parser.add_argument("--name", default="covariates", help="Name of the table in the page")
    options = parser.parse_args()
    prices = futures(options.futures) if options.futures else data.embedded(["WTI", "BRENT"])
    prices = prices.between(None, f"{SPANS[-1][1]}-12-31")
    if options.file:
        own = data.to_covariates(options.file, lag=options.lag, transform=options.transform)
        cases = {", ".join(own.terms): own}
    else:
        cases = market_covariates(options.futures) if options.futures else spot_covariates()
    text = "\n\n".join(tables(prices, cases))
    text += f"\n\n{environment('Percent of the pinball loss saved against the same model without covariates')}"
    print(text)
    if options.page:
        replace_table(options.page, options.name, text)


if __name__ == "__main__":
    main()
