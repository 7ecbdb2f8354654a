"""Walk forward through real prices and write the table of scores, wins and losses.

python benchmarks/skill.py                                             # embedded prices, the last seven years
python benchmarks/skill.py --data prices.csv --symbols CORN,WTI --years 2010-2016,2017-2023
python benchmarks/skill.py --baselines autoarima,autoets,theta --every 5 --reference har    # needs statsforecast
python benchmarks/skill.py --futures FOLDER --years 2010-2016,2017-2023 --reference har                # docs/skill.md
python benchmarks/skill.py --model har-lstm                            # what a network adds to its own baseline
python benchmarks/skill.py --out README.md                             # between <!-- score --> and <!-- /score -->
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import torch
from futures import futures
from markdown import into

from torchcommodity import data, forecast, models, training
from torchcommodity.forecast import BASELINES
from torchcommodity.models import MODELS
from torchcommodity.training import HAR_GARCH

NAMES = {5: "1 week", 21: "1 month", 63: "3 months", 126: "6 months"}


def lines(part: forecast.Backtest, reference: str) -> Iterator[str]:
    """One table: the skill of every model at every horizon, and whether the tested model wins against it."""
    scores = forecast.score(part, reference=reference)
    frame = scores.to_pandas().set_index(["model", "horizon"])
    yield f"**{', '.join(part.symbols)}, {scores.first} to {scores.last}.**"
    yield ""
    yield "| model | " + " | ".join(NAMES.get(h, str(h)) for h in part.horizons) + " |"
    yield "|---|" + "---:|" * len(part.horizons)
    for model in part.quantiles:
        cells = [cell(frame.loc[(model, h)], model == part.model) for h in part.horizons]
        yield f"| {model} | {' | '.join(cells)} |"
    covered = [f"{100 * frame.loc[(part.model, h), 'coverage90']:.1f} %" for h in part.horizons]
    yield f"| *90 % interval of {part.model} held* | {' | '.join(covered)} |"


def cell(row: pd.Series, tested: bool) -> str:
    """Skill in percent; against every other model, whether the tested model wins or loses, and the p-value of that."""
    if tested:
        return f"**{row.skill:+.2f}**"
    verdict = "same" if row.dm != row.dm else f"{'win' if row.dm < 0 else 'loss'}, p {row.dm_p:.2f}"
    return f"{row.skill:+.2f} ({verdict})"


def report(walked: forecast.Backtest, years: str, reference: str) -> str:
    parts = [walked.between(*map(int, span.split("-"))) for span in years.split(",")] if years else [walked]
    tables = "\n\n".join("\n".join(lines(part, reference)) for part in parts)
    learned = f"`{HAR_GARCH}` is the model without its network. What the network learned: {'; '.join(walked.fits)}. "
    return (
        f"{tables}\n\n"
        f"Percent of the pinball loss of `{reference}` that is saved; in brackets whether {walked.model} beats it, "
        f"with the p-value of Diebold and Mariano. {learned if walked.model != HAR_GARCH else ''}"
        f"torch {torch.__version__}, one seed, every year fitted on the years before it."
    )


def prices(options: argparse.Namespace) -> data.Panel:
    if options.futures:
        return futures(options.futures, calendar=not options.no_calendar, curve=not options.no_curve)
    return data.read(options.data, options.symbols.split(","))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="embedded", help="as for `torchcommodity forecast`")
    parser.add_argument("--symbols", default="WTI,SP500,NASDAQ")
    parser.add_argument("--futures", type=Path, help="folder with the ten futures, in place of --data; see futures.py")
    parser.add_argument("--no-curve", action="store_true", help="the calendar of rolls alone")
    parser.add_argument("--no-calendar", action="store_true", help="neither: as if the prices were spot")
    parser.add_argument("--model", default=HAR_GARCH, choices=MODELS)
    parser.add_argument("--years", default="", help="spans, 2010-2016,2017-2023; the last seven if absent")
    parser.add_argument("--baselines", default="", help="more of them: autoarima, autoets, theta")
    parser.add_argument("--every", type=int, default=1, help="origins that those forecast, and that are scored")
    parser.add_argument("--reference", default="unconditional", help="the model whose loss is 100 %%")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a Markdown file with the two markers")
    options = parser.parse_args()
    panel = prices(options)
    spans = [int(year) for span in options.years.split(",") if span for year in span.split("-")]
    if spans:
        panel = panel.between(None, f"{max(spans)}-12-31")
    more = {name: forecast.statistical(name, options.every) for name in options.baselines.split(",") if name}
    config = training.FitConfig(models.model_config(options.model, {}))
    walked = forecast.backtest(
        panel, config, first_year=min(spans, default=None), seed=options.seed, baselines=BASELINES | more
    )
    text = report(walked, options.years, options.reference)
    print(text)
    if options.out:
        into(options.out, "score", text)


if __name__ == "__main__":
    main()
