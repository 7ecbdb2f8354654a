"""How much of the best of several portfolios is luck."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchcommodity.portfolio._performance import sharpe_ratio
from torchcommodity.risk import (
    deflated_sharpe_ratio,
    probability_of_backtest_overfitting,
    superior_predictive_ability,
)

if TYPE_CHECKING:
    import pandas as pd

BENCHMARK = "equal weight"
BLOCK = 21  # rows of the bootstrap's blocks, a month


@dataclass(frozen=True)
class PortfolioSelection:
    """Result of `portfolio_selection`.

    Args:
        deflated_sharpe: of each portfolio, the probability that its true Sharpe ratio exceeds the one that the best of
            all portfolios would have by luck alone.
        best: portfolio with the highest Sharpe ratio, the benchmark aside.
        benchmark: portfolio that the others are compared with.
        p_value: that no portfolio has a higher Sharpe ratio than the benchmark (Hansen's SPA test).
        overfitting: probability that the portfolio with the best past is below the median afterwards; 0.5 is what
            picking at random gives.
    """

    deflated_sharpe: dict[str, float]
    best: str
    benchmark: str
    p_value: float
    overfitting: float


def portfolio_selection(
    returns: "pd.DataFrame",  # (T, K)
    *,
    benchmark: str = BENCHMARK,
    seed: int = 0,
    rows_per_year: int = 252,
) -> PortfolioSelection:
    """Judge the best of K portfolios, allowing for the search among them.

    The K portfolios count as the trials. A model that was itself selected among epochs or settings had more of them, so
    that its deflated Sharpe ratio is an upper bound. The SPA test compares returns at equal volatility.

    Args:
        returns: returns per row after costs, a column per portfolio, all finite.
        benchmark: column that the others are compared with.
        seed: random seed of the bootstrap.
        rows_per_year: factor of annualization.

    Returns:
        A PortfolioSelection; its numbers are NaN with fewer than 42 rows, two portfolios that vary, or a benchmark that
        does not. A portfolio that never varies has no deflated Sharpe ratio.

    Raises:
        ValueError: an unknown benchmark.

    References:
        Bailey, López de Prado (2014), doi:10.3905/jpm.2014.40.5.094. Hansen (2005), doi:10.1198/073500105000000063.
        Bailey, Borwein, López de Prado, Zhu (2017), doi:10.21314/JCF.2016.322.

    Example:
        >>> import numpy as np
        >>> import pandas as pd
        >>> returns = pd.DataFrame(np.random.default_rng(0).normal(0.0002, 0.01, (1000, 3)), columns=["a", "b", "c"])
        >>> selection = portfolio_selection(returns, benchmark="a")
        >>> {name: round(p, 2) for name, p in selection.deflated_sharpe.items()}
        {'a': 0.0, 'b': 0.42, 'c': 0.02}
    """
    if benchmark not in returns:
        names = ", ".join(map(str, returns.columns))
        raise ValueError(f"portfolio_selection: benchmark must be one of {names}; got {benchmark!r}")
    invested = returns.loc[:, returns.max() > returns.min()]
    if benchmark not in invested or invested.shape[1] < 2 or len(returns) < 2 * BLOCK:
        nothing = dict.fromkeys(map(str, returns.columns), math.nan)
        return PortfolioSelection(nothing, benchmark, benchmark, math.nan, math.nan)
    ratios = [sharpe_ratio(invested[name].to_numpy(), rows_per_year) for name in invested]
    deflated = {
        str(name): deflated_sharpe_ratio(returns[name], ratios, rows_per_year=rows_per_year).probability
        for name in returns
    }
    # minus the return at equal volatility, so that a lower mean loss is a higher Sharpe ratio
    test = superior_predictive_ability(-invested / invested.std(), benchmark, block=BLOCK, seed=seed)
    overfitting = probability_of_backtest_overfitting(invested).probability
    return PortfolioSelection(deflated, test.best, benchmark, test.p_value, overfitting)
