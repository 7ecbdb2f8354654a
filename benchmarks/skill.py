"""Backtest on real prices: the table of skill against every baseline.

python benchmarks/skill.py                                             # embedded prices, the last seven years
python benchmarks/skill.py --data prices.csv --symbols CORN,WTI --years 2010-2016,2017-2023
python benchmarks/skill.py --baselines autoarima,autoets,theta --every 5 --reference har    # needs statsforecast
python benchmarks/skill.py --futures FOLDER --years 2017-2023 --reference har --page docs/results/skill.md --name curve
python benchmarks/skill.py --model har-lstm                            # what a network adds to its own baseline
python benchmarks/skill.py --data monthly --symbols all --years 2010-2026 --page docs/results/monthly.md --name test
python benchmarks/skill.py --page docs/results/skill.md --name embedded --readme README.md
"""

import argparse
from dataclasses import replace
from pathlib import Path

import pandas as pd
import torch
from futures import futures
from markdown import environment, format_table, replace_table

from torchcommodity import data
from torchcommodity.data import horizon_name
from torchcommodity.forecast import Backtest, backtest, baselines, score, statistical
from torchcommodity.models import MODELS, HarConfig, HarGarch, HarGarchConfig
from torchcommodity.training import HAR_GARCH, FitConfig, ModelInputs, Prediction, calibrate

SYMMETRY = FitConfig().symmetry
MAX_NAMES = 12  # symbols named in the heading of a table


def without_averaging(inputs: ModelInputs, start: int, config: HarConfig) -> Prediction:
    """The model without the expected effect of averaging, as a row of the table."""
    model = HarGarch(inputs.prices.shape[1], HarGarchConfig(replace(config, averages=False, location=True)))
    calibrate(model.har, inputs.before(start), SYMMETRY)
    with torch.no_grad():
        output = model.har(*inputs.batch())
        return Prediction(model.har.quantiles(output)[0, start:], (2 * output.log_scale[0, start:]).exp())


def table(result: Backtest, reference: str, frequency: data.Frequency, brief: bool) -> str:
    """The skill of every model at every horizon, and its comparison with the tested model."""
    scores = score(result, reference=reference)
    frame = scores.to_pandas().set_index(["model", "horizon"])
    count = len(result.symbols)
    names = ", ".join(result.symbols) if count <= MAX_NAMES else f"{count} prices"
    heads = ["model", *(horizon_name(h, frequency) for h in result.horizons)]
    rows = [
        [model, *(cell(frame.loc[(model, h)], model == result.model, brief) for h in result.horizons)]
        for model in result.quantiles
    ]
    coverage = [f"{100 * frame.loc[(result.model, h), 'coverage90']:.1f} %" for h in result.horizons]
    rows.append([f"*coverage of the 90 % interval of {result.model}*", *coverage])
    return f"**{names}, {scores.first} to {scores.last}.**\n\n{format_table(heads, rows)}"


def cell(row: pd.Series, is_tested: bool, brief: bool) -> str:
    """Skill in percent; for the other models, how the tested model compares with them."""
    if is_tested:
        return f"**{row.skill:+.2f}**"
    if brief:
        return f"{row.skill:+.2f}" + (r"\*" if row.dm < 0 and round(row.dm_p, 2) < 0.05 else "")
    comparison = "identical" if row.dm != row.dm else f"{'better' if row.dm < 0 else 'worse'}, p {row.dm_p:.2f}"
    return f"{row.skill:+.2f} ({comparison})"


def report(result: Backtest, years: str, reference: str, frequency: data.Frequency, brief: bool = False) -> str:
    """The tables of all spans of years, and how to read them."""
    parts = [result.between(*map(int, span.split("-"))) for span in years.split(",")] if years else [result]
    tables = "\n\n".join(table(part, reference, frequency, brief) for part in parts)
    comparison = (
        f"A star: {result.model} is better than the row's model at the level of 5 % (Diebold-Mariano test). "
        if brief
        else f"In brackets: whether {result.model} is better or worse than the row's model, and the p-value of the "
        f"Diebold-Mariano test. "
    )
    fits = f"`{HAR_GARCH}` is the model without its network. Fits: {'; '.join(result.fits)}. "
    return (
        f"{tables}\n\n"
        f"Percent of the pinball loss of `{reference}` saved. {comparison}"
        f"{fits if result.model != HAR_GARCH else ''}"
        f"{environment(f'torch {torch.__version__}, one seed, every year fitted on the years before it')}"
    )


def read_prices(options: argparse.Namespace) -> data.Panel:
    if options.futures:
        return futures(options.futures, calendar=not options.no_calendar, curve=not options.no_curve)
    symbols = data.embedded_symbols("monthly") if options.symbols == "all" else options.symbols.split(",")
    return data.read(options.data, symbols if options.symbols else None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="embedded", help="Source of prices, as for `torchcommodity forecast`")
    parser.add_argument(
        "--symbols", default="", help="Columns of --data; default: all, with references; all: the 71 monthly prices"
    )
    parser.add_argument("--futures", type=Path, help="Folder with the ten futures, in place of --data; see futures.py")
    parser.add_argument("--no-curve", action="store_true", help="Use the roll calendar only")
    parser.add_argument("--no-calendar", action="store_true", help="Treat futures as spot prices")
    parser.add_argument("--model", default=HAR_GARCH, choices=MODELS, help="Model to test")
    parser.add_argument("--years", default="", help="Spans of test years, 2010-2016,2017-2023; default: the last seven")
    parser.add_argument("--baselines", default="", help="Additional baselines: autoarima, autoets, theta")
    parser.add_argument("--every", type=int, default=1, help="Rows between forecasts of the additional baselines")
    parser.add_argument("--reference", default="unconditional", help="Model whose pinball loss is 100 %%")
    parser.add_argument("--seed", type=int, default=0, help="Random seed for initialization and shuffling")
    parser.add_argument("--page", type=Path, help="Markdown page whose table is replaced")
    parser.add_argument("--name", default="score", help="Name of the table in the page")
    parser.add_argument("--readme", type=Path, help="Markdown page whose table `score` is replaced, without p-values")
    options = parser.parse_args()
    panel = read_prices(options)
    years = [int(year) for span in options.years.split(",") if span for year in span.split("-")]
    if years:
        panel = panel.between(None, f"{max(years)}-12-31")
    additional = {name: statistical(name, options.every) for name in options.baselines.split(",") if name}
    if any(panel.averages):
        additional[f"{HAR_GARCH}, no averaging"] = without_averaging
    config, rows = FitConfig.for_frequency(panel.frequency, options.model), baselines(panel.frequency) | additional
    result = backtest(panel, config, first_year=min(years, default=None), seed=options.seed, baselines=rows)
    text = report(result, options.years, options.reference, panel.frequency)
    print(text)
    if options.page:
        replace_table(options.page, options.name, text)
    if options.readme:
        replace_table(options.readme, "score", report(result, options.years, options.reference, panel.frequency, True))


if __name__ == "__main__":
    main()
