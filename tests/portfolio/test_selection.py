"""`portfolio_selection`: the numbers of `torchcommodity.risk`, and portfolios that never vary."""

import numpy as np
import pandas as pd
import pytest

from torchcommodity import risk
from torchcommodity.data import embedded
from torchcommodity.portfolio import portfolio_selection


@pytest.fixture(scope="module")
def returns() -> pd.DataFrame:
    """Daily returns of three spot prices, as if they were portfolios."""
    frame = embedded(["WTI", "BRENT", "HENRY_HUB"]).between("2012-01-01", "2016-12-31").to_pandas()
    return frame.pct_change(fill_method=None).dropna().rename(columns={"WTI": "equal weight"})


def test_portfolio_selection_counts_the_portfolios_as_trials(returns: pd.DataFrame) -> None:
    selection = portfolio_selection(returns)
    ratios = 252**0.5 * returns.mean() / returns.std()
    for name, probability in selection.deflated_sharpe.items():
        assert probability == pytest.approx(risk.deflated_sharpe_ratio(returns[name], ratios).probability)
    assert selection.best == ratios.drop("equal weight").idxmax()
    assert selection.overfitting == risk.probability_of_backtest_overfitting(returns).probability
    assert 0 < selection.p_value <= 1


def test_portfolio_selection_does_not_depend_on_leverage(returns: pd.DataFrame) -> None:
    levered = portfolio_selection(returns * [1.0, 3.0, 0.5])
    assert levered.p_value == portfolio_selection(returns).p_value


def test_portfolio_selection_without_variation_or_rows_is_nan(returns: pd.DataFrame) -> None:
    idle = portfolio_selection(returns.assign(idle=0.0))
    assert np.isnan(idle.deflated_sharpe["idle"])
    assert idle.p_value == portfolio_selection(returns).p_value
    assert np.isnan(portfolio_selection(returns[:41]).p_value)
    assert np.isnan(portfolio_selection(returns.assign(**{"equal weight": 0.0})).overfitting)


def test_portfolio_selection_rejects_an_unknown_benchmark(returns: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match=r"benchmark must be one of equal weight, BRENT, HENRY_HUB; got 'cash'"):
        portfolio_selection(returns, benchmark="cash")
