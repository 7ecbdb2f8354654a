"""Joint paths of the forecaster against bootstraps and the scenario generator, on years after the fits.

python benchmarks/joint_paths.py FOLDER --years 2017-2023 --page docs/results/scenarios.md    # ten futures
python benchmarks/joint_paths.py --years 2017-2023 --page docs/results/scenarios.md           # embedded spot prices
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from futures import futures
from markdown import environment, replace_table
from torch import Tensor

from torchcommodity import data
from torchcommodity.data import Panel, targets
from torchcommodity.forecast import Forecaster, Simulation, diebold_mariano, fit
from torchcommodity.losses import energy_score, variogram_score
from torchcommodity.ops import log_returns
from torchcommodity.scenarios import (
    ScenarioModel,
    complete_returns,
    fact_distances,
    fit_scenarios,
    stationary_bootstrap,
    stylized_facts,
)

SPOT = ["WTI", "BRENT", "HENRY_HUB"]
HORIZONS = (5, 21, 63, 126)  # rows
WEEKS = tuple(range(10, 61, 10))  # rows of the path that is scored as one vector
ROWS = tuple(sorted({*HORIZONS, *WEEKS}))
OVERLAP = {f"{h} rows": h for h in HORIZONS} | {"12 weeks": WEEKS[-1]}  # rows of each target
STEP = 21  # rows from one origin to the next
PATHS = 500
WINDOW = 126  # rows of a window of the stylized facts
SCORES = {"energy": energy_score, "variogram": variogram_score}
SIMULATE, BOOTSTRAP = "simulate", "bootstrap"


class Past(NamedTuple):
    """What is fitted on the rows before a year."""

    forecaster: Forecaster
    bootstrap: Tensor  # (P, T, N) cumulative log-returns
    generator: Tensor


def main() -> None:
    options = parse_arguments()
    panel = futures(options.folder) if options.folder else data.read("embedded", SPOT)
    first, last = map(int, options.years.split("-"))
    panel = panel.between("2000-01-01", f"{last}-12-31").drop_empty_rows()
    generator = fit_scenarios(panel, through=f"{first - 1}-12-31")
    scores, windows = score_origins(panel, generator, first)
    facts = fact_table(panel, generator, windows, first)
    text = "\n".join([*report(scores, facts), "", environment(f"{PATHS} paths, one seed")])
    print(text)
    if options.page:
        replace_table(options.page, "futures_paths" if options.folder else "spot_paths", text)


def score_origins(panel: Panel, generator: ScenarioModel, first_year: int) -> tuple[pd.DataFrame, Tensor]:
    """Scores by origin (rows), and target, source and score (columns); and simulated returns without roll gaps."""
    outcomes, scale = targets(panel.values.plain(), ROWS), daily_scale(panel, first_year)
    start = int(np.searchsorted(panel.dates, np.datetime64(f"{first_year}-01-01")))
    origins = range(start, len(panel) - ROWS[-1], STEP)
    rows, windows, past, year = {}, [], None, None
    for origin in origins:
        if panel.dates[origin].astype("datetime64[Y]") != year:
            year = panel.dates[origin].astype("datetime64[Y]")
            past = fit_past(panel.between(None, year.astype("datetime64[D]") - np.timedelta64(1, "D")), generator)
        simulation = past.forecaster.simulate(panel.between(None, panel.dates[origin]), PATHS)
        paths = {name: x / scale for name, x in sources(simulation, past).items()}
        rows[origin] = score_paths(paths, outcomes[origin] / scale)
        # every origin has the same share in the windows of the stylized facts
        windows.append((simulation.log_returns.plain() - simulation.roll_gaps)[: -(-PATHS // len(origins))])
    return pd.DataFrame.from_dict(rows, orient="index"), torch.cat(windows)


def daily_scale(panel: Panel, first_year: int) -> Tensor:
    """Standard deviation of the daily returns before the test: the unit of every symbol's log-returns."""
    return log_returns(panel.between(None, f"{first_year - 1}-12-31").values.plain()).square().nanmean(0).sqrt()


def fit_past(panel: Panel, generator: ScenarioModel) -> Past:
    returns = log_returns(panel.values.plain())  # with the roll gaps, as the outcomes
    complete = returns[returns.isfinite().all(1)]
    bootstrap = stationary_bootstrap(complete, panel.symbols, PATHS, ROWS[-1]).returns.plain()
    generated = generator.sample(PATHS, rows=ROWS[-1]).returns.plain()
    return Past(fit(panel), bootstrap.cumsum(1), generated.cumsum(1))


def sources(simulation: Simulation, past: Past) -> dict[str, Tensor]:  # each (P, T, N)
    """Cumulative log-returns by source: the simulation, its baselines, and mixtures of both."""
    simulated = simulation.log_returns.plain().cumsum(1)
    random = torch.Generator().manual_seed(0)
    shuffled = [column[torch.randperm(len(column), generator=random)] for column in simulated.unbind(-1)]
    return {
        SIMULATE: simulated,
        BOOTSTRAP: past.bootstrap,
        "scenario-gan": past.generator,
        "bootstrap with its margins": like(past.bootstrap, simulated),
        "simulate, symbols shuffled": torch.stack(shuffled, -1),
    }


def like(paths: Tensor, margins: Tensor) -> Tensor:
    """The values of `margins` in the order of `paths`, at each row and symbol."""
    ranks = paths.argsort(0).argsort(0)
    return margins.sort(0).values.gather(0, ranks)


def score_paths(paths: dict[str, Tensor], outcome: Tensor) -> dict[tuple[str, str, str], float]:
    values = {}
    for source, x in paths.items():
        for name, score in SCORES.items():
            for h in HORIZONS:
                unit = h**0.5
                values[f"{h} rows", source, name] = score(x[:, h - 1] / unit, outcome[ROWS.index(h)] / unit).item()
            weeks = outcome[[ROWS.index(row) for row in WEEKS]].flatten()
            samples = x[:, [row - 1 for row in WEEKS]].flatten(1)
            values["12 weeks", source, name] = score(samples, weeks).item()
    return values


def fact_table(panel: Panel, generator: ScenarioModel, simulated: Tensor, first_year: int) -> pd.DataFrame:
    """Distances of the stylized facts of windows of `WINDOW` rows from those of the real ones."""
    returns, dates = complete_returns(panel)
    past = returns[torch.from_numpy(dates < np.datetime64(f"{first_year}-01-01"))]
    real = stylized_facts(returns[len(past) :].unfold(0, WINDOW, STEP).mT)
    windows = {
        SIMULATE: simulated,
        BOOTSTRAP: stationary_bootstrap(past, panel.symbols, PATHS, WINDOW).returns.plain(),
        "scenario-gan": generator.sample(PATHS, rows=WINDOW).returns.plain(),
        "past": past.unfold(0, WINDOW, STEP).mT,
    }
    return pd.DataFrame({name: fact_distances(real, stylized_facts(x)) for name, x in windows.items()})


def report(scores: pd.DataFrame, facts: pd.DataFrame) -> Iterator[str]:
    scores = scores.dropna()
    yield f"{len(scores)} origins, one every {STEP} rows."
    for name in SCORES:
        part = scores.xs(name, axis=1, level=2)
        yield ""
        yield f"| {name} score | {' | '.join(OVERLAP)} |"
        yield "|---|" + "---:|" * len(OVERLAP)
        for source in dict.fromkeys(part.columns.get_level_values(1)):
            yield f"| {source} | {' | '.join(cell(part[target], source, rows) for target, rows in OVERLAP.items())} |"
    yield ""
    yield f"| stylized facts | {' | '.join(facts.columns)} |"
    yield "|---|" + "---:|" * len(facts.columns)
    for family, row in facts.iterrows():
        yield f"| {family} | {' | '.join(f'{x:.3f}' for x in row)} |"


def cell(part: pd.DataFrame, source: str, overlap: int) -> str:
    """Percent of the bootstrap's score saved; whether `simulate` is better or worse, and the p-value."""
    saved = f"{100 * (1 - part[source].mean() / part[BOOTSTRAP].mean()):+.2f}"
    if source == SIMULATE:
        return f"**{saved}**"
    statistic, p = diebold_mariano((part[SIMULATE] - part[source]).to_numpy(), -(-overlap // STEP))
    return f"{saved} ({'better' if statistic < 0 else 'worse'}, p {p:.2f})"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="Folder with the ten futures; default: spot prices")
    parser.add_argument("--years", default="2017-2023", help="First and last test year")
    parser.add_argument("--page", type=Path, help="Markdown page whose table is replaced")
    return parser.parse_args()


if __name__ == "__main__":
    main()
