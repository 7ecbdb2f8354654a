"""Walk-forward backtest of a trained portfolio against standard baselines."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from torch_opkit.arguments import operation
from torchcommodity.data import calendar_years, check_not_synthetic, summarize_names, to_panel, walk_forward
from torchcommodity.forecast import TEST_YEARS
from torchcommodity.models import PortfolioLstm
from torchcommodity.ops import linear_recurrence
from torchcommodity.portfolio._baselines import equal_weight, inverse_volatility, minimum_variance, time_series_momentum
from torchcommodity.portfolio._performance import Performance, as_series, performance
from torchcommodity.portfolio._selection import PortfolioSelection, portfolio_selection
from torchcommodity.portfolio._sharpe_difference import SharpeDifference, sharpe_difference
from torchcommodity.portfolio._tradable_panel import TradablePanel, tradable_panel
from torchcommodity.portfolio._train import TRADES_PER_ROLL, PortfolioTrainConfig, check_config, train
from torchcommodity.training import Progress

if TYPE_CHECKING:
    import pandas as pd

TRAINED = "lstm"
UNTRAINED = "untrained"
COSTS = (0.0002, 0.0010)  # 2 and 10 basis points


@dataclass(frozen=True, eq=False)
class PortfolioResult:
    """Backtest of one portfolio at one cost.

    Args:
        name: name of the portfolio.
        cost: cost of trading one unit of weight.
        weights: (T, N) weights on all rows of the panel; 0 before the test rows.
        net: (R,) returns after costs on the test rows.
        performance: performance on the test rows.
        sharpe_difference: Sharpe ratio of the trained portfolio minus that of this one; None for the trained one.
    """

    name: str
    cost: float
    weights: Tensor
    net: Tensor
    performance: Performance
    sharpe_difference: SharpeDifference | None


@dataclass(frozen=True, eq=False, repr=False)
class PortfolioBacktest:
    """Walk-forward results of several portfolios.

    Args:
        dates: (R,) dates of the test rows.
        symbols: N symbols.
        long_short: whether short positions are allowed.
        results: every portfolio at every cost, the trained one first.
        fits: outcome of each training, one sentence per cost and year.
        excluded: baselines that could not be computed, with the reason.
    """

    dates: np.ndarray[Any, np.dtype[np.datetime64]]
    symbols: tuple[str, ...]
    long_short: bool
    results: tuple[PortfolioResult, ...]
    fits: tuple[str, ...]
    excluded: tuple[str, ...] = ()

    def at_cost(self, cost: float) -> list[PortfolioResult]:
        """Select the portfolios at one cost."""
        return [result for result in self.results if result.cost == cost]

    @cached_property
    def selections(self) -> dict[float, PortfolioSelection]:
        """How much of the best portfolio is luck, by cost, see `portfolio_selection`."""
        import pandas as pd

        return {
            cost: portfolio_selection(pd.DataFrame({item.name: as_series(item.net) for item in self.at_cost(cost)}))
            for cost in dict.fromkeys(item.cost for item in self.results)
        }

    def to_pandas(self) -> "pd.DataFrame":
        """Convert to a DataFrame with one row per cost and portfolio.

        Columns: cost_bps, portfolio, the fields of `Performance`, the Sharpe ratio of the trained portfolio minus that
        of the row's portfolio (`difference`) with its 95 % interval (`low`, `high`), and of `selections` the
        `deflated_sharpe` of the row's portfolio, and `spa_p_value` and `overfitting` of all portfolios at its cost.
        """
        import pandas as pd

        rows = []
        for result in self.results:
            difference = asdict(result.sharpe_difference or SharpeDifference(math.nan, math.nan, math.nan))
            selection = self.selections[result.cost]
            rows.append(
                {
                    "cost_bps": round(1e4 * result.cost, 9),
                    "portfolio": result.name,
                    **asdict(result.performance),
                    **difference,
                    "deflated_sharpe": selection.deflated_sharpe[result.name],
                    "spa_p_value": selection.p_value,
                    "overfitting": selection.overfitting,
                }
            )
        table: pd.DataFrame = pd.DataFrame(rows)
        return table

    def __repr__(self) -> str:
        names = ", ".join(dict.fromkeys(result.name for result in self.results))
        days = f"{len(self.dates):,} rows {self.dates[0]} to {self.dates[-1]}"
        return f"PortfolioBacktest({summarize_names(self.symbols)}; {days}; {names})"


@operation("portfolio.backtest")
def backtest(
    prices: Any,
    config: PortfolioTrainConfig | None = None,
    *,
    costs: Sequence[float] = COSTS,
    first_year: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> PortfolioBacktest:
    """Backtest daily rebalancing from `first_year` on, with a model retrained every year on earlier rows.

    All portfolios have the target volatility and limits of `config.model`, pay the same costs for trades and rolls (two
    trades each), and buy their first positions on the first test row.

    Args:
        prices: raw prices, anything that `data.to_panel` takes. Roll gaps of symbols with contracts
            are not earned.
        config: model and training; its `cost` is replaced by each of `costs`.
        costs: costs of trading one unit of weight; the model is trained for each.
        first_year: first test year; by default the last seven years are tested, or fewer in a short history.
        seed: random seed for training and bootstrap.
        progress: called as progress(done, total, description) after each training.

    Returns:
        A PortfolioBacktest.

    Raises:
        TypeError: `prices` has another type.
        ValueError: `costs` is empty, there is no test row, no training row before the first test year, or the panel is
            synthetic.

    Example:
        >>> from torchcommodity import data
        >>> panel = data.embedded(["WTI", "BRENT"]).between("2013-01-01", "2018-12-31")
        >>> backtest(panel, PortfolioTrainConfig(epochs=0), costs=[0.0002], first_year=2018)
        PortfolioBacktest(WTI, BRENT; 255 rows 2018-01-02 to 2018-12-28; lstm, untrained, ...)
    """
    config = check_config(config)
    panel = to_panel(prices)
    check_not_synthetic(panel)
    if not costs:
        raise ValueError("portfolio.backtest: costs must not be empty")
    tradable = tradable_panel(panel)
    years = _test_years(panel.dates, first_year)
    start = years[0].start
    baselines, excluded = _baseline_weights(tradable, config, start)
    results, fits = [], []
    for cost in costs:
        weights, notes = _trained_weights(tradable, replace(config, cost=cost), years, panel.dates, seed, progress)
        fits += [f"{1e4 * cost:g} bp, {note}" for note in notes]
        results += _evaluate({TRAINED: weights, **baselines}, tradable, config, cost, start, seed)
    return PortfolioBacktest(
        panel.dates[start:], panel.symbols, config.model.long_short, tuple(results), tuple(fits), tuple(excluded)
    )


def _test_years(dates: Any, first_year: int | None) -> list[range]:
    """Rows of each test year, with training rows before the first one."""
    years = calendar_years(dates)
    if first_year is None:
        first_year = max(int(years[-1]) - TEST_YEARS["daily"] + 1, int(years[0]) + 1)
    before = int((years < first_year).sum())
    if not 1 < before < len(years):
        raise ValueError(
            f"portfolio.backtest: first_year must be in {years[0]}..{years[-1]} with rows to train on before it; got "
            f"first_year={first_year} with {before}"
        )
    return [block.test for block in walk_forward(dates, test_start=first_year, horizon=1)]


def _trained_weights(
    tradable: TradablePanel,
    config: PortfolioTrainConfig,
    years: list[range],
    dates: Any,
    seed: int,
    progress: Progress | None,
) -> tuple[Tensor, list[str]]:
    """Weights on all test rows; each year's model is trained on the rows before it."""
    weights, notes = torch.zeros_like(tradable.prices), []
    for done, year in enumerate(years):
        name = str(dates[year.start].astype("datetime64[Y]"))
        portfolio = train(tradable.before(year.start), config, seed=seed)
        notes.append(f"{name}: {portfolio.note}")
        history = tradable.before(year.stop)
        with torch.no_grad():
            weights_to_date = portfolio.model(history.prices[None], history.rolls[None])[0]
        weights[year.start : year.stop] = weights_to_date[year.start :]
        if progress is not None:
            progress(done + 1, len(years), f"{name} at {1e4 * config.cost:g} bp")
    return weights, notes


@torch.no_grad()
def _baseline_weights(
    tradable: TradablePanel, config: PortfolioTrainConfig, start: int
) -> tuple[dict[str, Tensor], list[str]]:
    """Weights of the untrained model and the baselines, at the model's target volatility; 0 before the test rows."""
    model = PortfolioLstm(config.model)
    inputs = model.inputs(tradable.prices[None], tradable.rolls[None])
    investable, volatility = inputs.investable[0], inputs.covariance[0].diagonal(dim1=-2, dim2=-1).sqrt()
    long_short = config.model.long_short
    logs = torch.log1p(tradable.returns)
    raw = {
        "equal weight": equal_weight(investable).to(volatility),
        "inverse volatility": inverse_volatility(investable, volatility),
        "momentum": time_series_momentum(investable, volatility, logs, long_short=long_short),
    }
    excluded = []
    try:
        weights = minimum_variance(investable, tradable.returns, first_row=start, long_short=long_short)
        raw["minimum variance"] = weights
        empty = (investable.any(-1) & (weights == 0).all(-1))[start:].sum()
        if empty:
            excluded.append(f"minimum variance on {empty} rows, before which too few had a return of every asset")
    except ModuleNotFoundError as error:
        excluded.append(f"minimum variance needs {error.name}: pip install 'torchcommodity[portfolio]'")
    scaled = {UNTRAINED: model.weights(inputs)[0]}
    for name, weights in raw.items():
        target = model.target(weights[None], inputs.covariance)
        has_price = inputs.has_price  # an asset without a price keeps its weight
        scaled[name] = linear_recurrence((~has_price).to(target), torch.where(has_price, target, 0.0))[0]
    return {name: torch.cat([torch.zeros_like(w[:start]), w[start:]]) for name, w in scaled.items()}, excluded


def _evaluate(
    portfolios: dict[str, Tensor],
    tradable: TradablePanel,
    config: PortfolioTrainConfig,
    cost: float,
    start: int,
    seed: int,
) -> list[PortfolioResult]:
    rows_per_year = config.model.rows_per_year
    results = {
        name: performance(
            weights,
            tradable.returns,
            cost,
            rolls=tradable.rolls,
            roll_cost=TRADES_PER_ROLL * cost,
            first_row=start,
            rows_per_year=rows_per_year,
        )
        for name, weights in portfolios.items()
    }
    trained = as_series(results[TRAINED][1])

    def difference(name: str, net: Tensor) -> SharpeDifference | None:
        if name == TRAINED:
            return None
        return sharpe_difference(trained, as_series(net), seed=seed, rows_per_year=rows_per_year)

    return [
        PortfolioResult(name, cost, portfolios[name], net, metrics, difference(name, net))
        for name, (metrics, net) in results.items()
    ]
