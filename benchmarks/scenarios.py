"""The scenario generator against a stationary bootstrap, on later windows of real prices, over several seeds.

python benchmarks/scenarios.py DAILY.csv.gz --curve CURVE.csv --through 2016-12-31 --page docs/results/scenarios.md
"""

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from markdown import environment, replace_table

from torchcommodity import data
from torchcommodity.scenarios import (
    AdversarialConfig,
    ScenarioEvaluation,
    ScenarioFitConfig,
    complete_returns,
    evaluate_scenarios,
    fact_distances,
    fit_scenarios,
    stationary_bootstrap,
    stylized_facts,
)

CONTRACTS = {"WTI": "CL", "HEATOIL": "HO", "NATGAS": "NG", "CORN": "C", "SOYBEAN": "S"}
WINDOW = 252
MEAN_BLOCKS = (5, 20, 60, 120, 252)  # rows


def main() -> None:
    arguments = parse_arguments()
    panel = read_panel(arguments)
    with ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn")) as pool:
        evaluations = list(pool.map(partial(evaluate, panel=panel, arguments=arguments), arguments.seeds))
    text = "\n\n".join(tables(evaluations, panel, arguments))
    print(text)
    if arguments.page is not None:
        note = environment(f"Seeds {', '.join(map(str, arguments.seeds))}")
        replace_table(arguments.page, "evaluation", f"```\n{text}\n```\n\n{note}")


def tables(evaluations: list[ScenarioEvaluation], panel: data.Panel, arguments: argparse.Namespace) -> Iterator[str]:
    first = evaluations[0]
    distances = pd.concat([evaluation.to_pandas() for evaluation in evaluations], keys=arguments.seeds)
    mean, deviation = (getattr(distances.groupby(level=1, sort=False), name)() for name in ("mean", "std"))
    yield f"{first.windows} real windows, {first.first} to {first.last}; mean over seeds\n{mean.round(3)}"
    yield f"standard deviation over seeds\n{deviation.round(3)}"
    yield f"means of the facts, seed {arguments.seeds[0]}\n{first.fact_means().round(3)}"
    differences = pd.DataFrame([evaluation.leave_one_year_out for evaluation in evaluations], index=arguments.seeds)
    yield f"generator minus bootstrap in total, by seed, one year left out\n{differences.round(3)}"
    lines = bootstrap_lines(first, panel, arguments.through)
    yield "\n".join(["the bootstrap with other mean blocks, in total", *lines])


def bootstrap_lines(evaluation: ScenarioEvaluation, panel: data.Panel, through: str) -> Iterator[str]:
    returns, dates = complete_returns(panel)
    past = returns[torch.from_numpy(dates <= np.datetime64(through))]
    for block in MEAN_BLOCKS:
        paths = stationary_bootstrap(past, panel.symbols, evaluation.paths, WINDOW, block=block)
        distances = fact_distances(evaluation.facts["real"], stylized_facts(paths.returns.plain()))
        yield f"{block:4d} rows: {distances['total']:.3f}"


def read_panel(arguments: argparse.Namespace) -> data.Panel:
    panel = data.read(arguments.daily, list(CONTRACTS)).with_contracts(CONTRACTS)
    if arguments.curve is not None:
        panel = panel.with_curve(data.read_curve(arguments.curve))
    return panel.between(arguments.first, arguments.last)


def evaluate(seed: int, panel: data.Panel, arguments: argparse.Namespace) -> ScenarioEvaluation:
    config = ScenarioFitConfig(train=AdversarialConfig(steps=arguments.steps))
    model = fit_scenarios(panel, config, seed=seed, through=arguments.through)
    print(model, flush=True)
    return evaluate_scenarios(model, panel, config, seed=seed)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("daily", help="File with date,symbol,close of the five front-month series")
    parser.add_argument("--curve", type=Path, help="File with date,symbol,nth,close of their nearby contracts")
    parser.add_argument("--first", default="2000-01-04", help="First date")
    parser.add_argument("--last", default=None, help="Last date")
    parser.add_argument("--through", default="2016-12-31", help="Last date of the fit")
    parser.add_argument("--steps", type=int, default=AdversarialConfig().steps, help="Generator steps")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="Random seeds")
    parser.add_argument("--page", type=Path, help="Markdown page whose table `evaluation` is replaced")
    parser.add_argument("--workers", type=int, default=1, help="Seeds evaluated in parallel")
    return parser.parse_args()


if __name__ == "__main__":
    main()
