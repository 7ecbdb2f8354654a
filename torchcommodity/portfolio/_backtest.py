"""Walk a portfolio forward through years it has not seen, beside the rules that it must beat."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchcommodity.data import Panel, walk_forward
from torchcommodity.forecast import TEST_YEARS
from torchcommodity.models import PortfolioLstm, View
from torchcommodity.ops import linear_recurrence
from torchcommodity.portfolio._measures import Interval, Measures, as_series, measure, sharpe_difference
from torchcommodity.portfolio._minimum_variance import minimum_variance
from torchcommodity.portfolio._rules import equal_weight, inverse_volatility, time_series_momentum
from torchcommodity.portfolio._tradable import Tradable, tradable
from torchcommodity.portfolio._train import ROLL, Progress, TrainConfig, train

OURS = "lstm"
UNTRAINED = "untrained"
COSTS = (0.0002, 0.0010)


@dataclass(frozen=True)
class Result:
    """One portfolio at one cost.

    Args:
        name: of the portfolio.
        cost: of trading one unit of weight.
        weights: (T, N), all rows of the panel; 0 before the test.
        net: returns after costs of the test rows (R,).
        measures: of the test rows.
        against: Sharpe ratio of ours less this one's, with its interval; None for ours.
    """

    name: str
    cost: float
    weights: Tensor
    net: Tensor
    measures: Measures
    against: Interval | None


@dataclass(frozen=True)
class FoldResult:
    """A walk-forward of portfolios.

    Args:
        dates: of the test rows (R,).
        symbols: N names.
        long_short: whether short positions were allowed.
        results: every portfolio at every cost, ours first.
        fits: what training gave, one line a cost and year.
        left_out: what could not be computed, and why.
    """

    dates: np.ndarray[Any, np.dtype[np.datetime64]]
    symbols: tuple[str, ...]
    long_short: bool
    results: tuple[Result, ...]
    fits: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    def at(self, cost: float) -> list[Result]:
        """The portfolios at one cost."""
        return [result for result in self.results if result.cost == cost]


def walk(
    panel: Panel,
    config: TrainConfig | None = None,
    *,
    costs: Sequence[float] = COSTS,
    first: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> FoldResult:
    """Rebalance daily through all years from `first` on, with a model trained anew every year on the rows before it.

    Every portfolio aims at the volatility of `config.model`, may hold what its model may hold, pays the same costs for
    trades and for rolls (two trades each), and starts with the purchase of its positions on the first test row.

    Args:
        panel: raw prices, with contracts and curve where they are known; without them every return counts, roll gaps
            included.
        config: model and training; its `cost` is replaced by each of `costs`.
        costs: of trading one unit of weight; the network is trained for each.
        first: first test year; by default the last seven years are tested.
        seed: of training and bootstrap.
        progress: called as progress(done, of, what).

    Raises:
        ValueError: no cost, no test row, or no year to train on before the first.
    """
    if not costs:
        raise ValueError("walk: expected at least one cost of trading; got none")
    config = config or TrainConfig()
    found = tradable(panel)
    first = int(str(panel.dates[-1])[:4]) - TEST_YEARS + 1 if first is None else first
    years = [block.test for block in walk_forward(panel.dates, test_start=first, horizon=1)]
    start = years[0].start
    rules, left_out = _rules(found, config, start)
    results, fits = [], []
    for cost in costs:
        ours, notes = _trained(found, replace(config, cost=cost), years, panel.dates, seed, progress)
        fits += [f"{1e4 * cost:g} bp, {note}" for note in notes]
        results += _judged({OURS: ours, **rules}, found, config, cost, start, seed)
    return FoldResult(
        panel.dates[start:], panel.symbols, config.model.long_short, tuple(results), tuple(fits), tuple(left_out)
    )


def _trained(
    traded: Tradable, config: TrainConfig, years: list[range], dates: Any, seed: int, progress: Progress | None
) -> tuple[Tensor, list[str]]:
    """Weights of all test rows, each year's from a model that saw the rows before it."""
    weights, notes = torch.zeros_like(traded.prices), []
    for done, year in enumerate(years):
        name = str(dates[year.start].astype("datetime64[Y]"))
        trained = train(traded.until(year.start), config, seed=seed)
        notes.append(f"{name}: {trained.note}")
        seen = traded.until(year.stop)
        with torch.no_grad():
            made = trained.model(seen.prices[None], seen.rolls[None])[0]
        weights[year.start : year.stop] = made[year.start :]
        if progress is not None:
            progress(done + 1, len(years), f"{name} at {1e4 * config.cost:g} bp")
    return weights, notes


@torch.no_grad()
def _rules(traded: Tradable, config: TrainConfig, start: int) -> tuple[dict[str, Tensor], list[str]]:
    """Weights of everything that ours must beat, sized like ours; 0 before the test."""
    model = PortfolioLstm(config.model)
    view = model.view(traded.prices[None], traded.rolls[None])
    known, volatility = view.known[0], view.covariance[0].diagonal(dim1=-2, dim2=-1).sqrt()
    short = config.model.long_short
    logs = torch.log1p(traded.returns)
    found = {
        "equal weight": equal_weight(known).to(volatility),
        "inverse volatility": inverse_volatility(known, volatility),
        "momentum": time_series_momentum(known, volatility, logs, long_short=short),
    }
    left_out = []
    try:
        found["minimum variance"] = minimum_variance(known, traded.returns, first=start, long_short=short)
        idle = (known.any(-1) & (found["minimum variance"] == 0).all(-1))[start:].sum()
        if idle:
            left_out.append(f"minimum variance on {idle} rows, before which too few had a return of every asset")
    except ModuleNotFoundError as error:
        left_out.append(f"minimum variance needs {error.name}: pip install 'torchcommodity[portfolio]'")
    sized = {UNTRAINED: model.weights(view)[0]}
    sized |= {name: _sized(model, view, weights) for name, weights in found.items()}
    return {name: _from(weights, start) for name, weights in sized.items()}, left_out


def _sized(model: PortfolioLstm, view: View, weights: Tensor) -> Tensor:  # (T, N) -> (T, N)
    """To the volatility of the model; what has no price today keeps its weight."""
    sized, priced = model.target(weights[None], view.covariance), view.priced
    return linear_recurrence((~priced).to(sized), torch.where(priced, sized, 0.0))[0]


def _from(weights: Tensor, start: int) -> Tensor:
    return torch.cat([torch.zeros_like(weights[:start]), weights[start:]])


def _judged(
    portfolios: dict[str, Tensor], traded: Tradable, config: TrainConfig, cost: float, start: int, seed: int
) -> list[Result]:
    year = config.model.rows_per_year
    made = {
        name: measure(
            weights,
            traded.returns,
            cost,
            rolls=traded.rolls,
            roll_cost=ROLL * cost,
            first=start,
            rows_per_year=year,
        )
        for name, weights in portfolios.items()
    }
    ours = as_series(made[OURS][1])

    def against(name: str) -> Interval | None:
        theirs = as_series(made[name][1])
        return None if name == OURS else sharpe_difference(ours, theirs, seed=seed, rows_per_year=year)

    return [
        Result(name, cost, portfolios[name], net, measures, against(name)) for name, (measures, net) in made.items()
    ]
