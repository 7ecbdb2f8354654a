"""The scenario generator against a stationary bootstrap, on windows of years that neither has seen; several seeds.

python benchmarks/scenarios.py DAILY.csv.gz --curve CURVE.csv --through 2016-12-31 --out docs/scenarios.md
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
from markdown import into

from torchcommodity import data
from torchcommodity.scenarios import (
    AdversarialConfig,
    ScenarioEvaluation,
    ScenarioFitConfig,
    distance,
    evaluate_scenarios,
    fit_scenarios,
    stationary_bootstrap,
    stylized_facts,
)
from torchcommodity.scenarios._fit import complete_returns

CONTRACTS = {"WTI": "CL", "HEATOIL": "HO", "NATGAS": "NG", "CORN": "C", "SOYBEAN": "S"}
WINDOW = 252
BLOCKS = (5, 20, 60, 120, 252)  # mean lengths of blocks, rows


def main() -> None:
    arguments = _arguments()
    panel = _panel(arguments)
    with ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(partial(_judged, panel=panel, arguments=arguments), arguments.seeds))
    page = "\n\n".join(_tables(found, panel, arguments))
    print(page)
    if arguments.out is not None:
        into(arguments.out, "verdict", f"```\n{page}\n```")


def _tables(found: list[ScenarioEvaluation], panel: data.Panel, arguments: argparse.Namespace) -> Iterator[str]:
    tables = pd.concat([one.frame() for one in found], keys=arguments.seeds)
    mean, spread = (getattr(tables.groupby(level=1, sort=False), name)() for name in ("mean", "std"))
    yield f"{found[0].windows} real windows, {found[0].first} to {found[0].last}; mean over seeds\n{mean.round(3)}"
    yield f"standard deviation over seeds\n{spread.round(3)}"
    yield f"means of the facts, seed {arguments.seeds[0]}\n{found[0].means().round(3)}"
    left = pd.DataFrame([one.without for one in found], index=arguments.seeds)
    yield f"ours less bootstrap in total, by seed, one year left out\n{left.round(3)}"
    yield "\n".join(["the bootstrap with other mean blocks, in total", *_blocks(found[0], panel, arguments.through)])


def _blocks(found: ScenarioEvaluation, panel: data.Panel, through: str) -> Iterator[str]:
    returns, dates = complete_returns(panel)
    past = returns[torch.from_numpy(dates <= np.datetime64(through))]
    for block in BLOCKS:
        paths = stationary_bootstrap(past, panel.symbols, found.paths, WINDOW, block=block)
        yield f"{block:4d} rows: {distance(found.facts['real'], stylized_facts(paths.returns.plain()))['total']:.3f}"


def _panel(arguments: argparse.Namespace) -> data.Panel:
    panel = data.read(arguments.daily, list(CONTRACTS)).with_contracts(CONTRACTS)
    if arguments.curve is not None:
        panel = panel.with_curve(data.read_curve(arguments.curve))
    return panel.between(arguments.first, arguments.last)


def _judged(seed: int, panel: data.Panel, arguments: argparse.Namespace) -> ScenarioEvaluation:
    config = ScenarioFitConfig(train=AdversarialConfig(steps=arguments.steps))
    maker = fit_scenarios(panel, config, seed=seed, through=arguments.through)
    print(maker.record, flush=True)
    return evaluate_scenarios(maker, panel, config, seed=seed)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("daily", help="date,symbol,close of the five front months")
    parser.add_argument("--curve", type=Path, help="date,symbol,nth,close of their nearby contracts")
    parser.add_argument("--first", default="2000-01-04")
    parser.add_argument("--last", default=None)
    parser.add_argument("--through", default="2016-12-31")
    parser.add_argument("--steps", type=int, default=AdversarialConfig().steps)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, help="page whose table is written anew: docs/scenarios.md")
    parser.add_argument("--workers", type=int, default=1, help="seeds at a time")
    return parser.parse_args()


if __name__ == "__main__":
    main()
