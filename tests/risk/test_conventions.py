"""Labels, levels, signs and shapes that can be mistaken: aligned, or refused in words that work when followed."""

import numpy as np
import pandas as pd
import pytest
import torch

from torchcommodity import data, portfolio, risk


@pytest.fixture(scope="module")
def returns() -> pd.Series:
    prices = data.embedded(["WTI"]).between("2021-01-01", "2023-06-30").to_pandas()["WTI"].dropna()
    return np.log(prices).diff().dropna()


@pytest.fixture(scope="module")
def var(returns: pd.Series) -> pd.Series:
    return (1.645 * returns.ewm(halflife=20).std()).shift(1).bfill().rename("VaR")


def results(returns, var) -> list[object]:
    return [
        risk.kupiec_test(returns, var),
        risk.christoffersen_test(returns, var),
        risk.acerbi_szekely_test(returns, var, 1.3 * var, replications=50),
    ]


def test_series_in_another_order_are_aligned_by_their_dates(returns, var):
    expected = results(returns.to_numpy(), var.to_numpy())
    assert results(returns, var) == results(returns, var.iloc[::-1]) == results(returns[::-1], var[::-1]) == expected


def test_series_of_other_dates_are_refused_and_can_be_aligned(returns, var):
    late, early = returns.iloc[:-1], var.iloc[1:]
    with pytest.raises(
        ValueError, match=r"kupiec_test: returns and value_at_risk must have the same index; align .*'inner'\)"
    ):
        risk.kupiec_test(late, early)
    aligned = late.align(early, join="inner")
    assert risk.kupiec_test(*aligned).observations == len(returns) - 2
    with pytest.raises(ValueError, match="returns must be in order of dates beside arrays; got arrays='value_at_risk'"):
        risk.kupiec_test(returns[::-1], var.to_numpy())


def test_share_of_the_tail_is_no_level(returns, var):
    sample = torch.tensor(returns.to_numpy())
    for function, arguments in (
        (risk.value_at_risk, (sample,)), (risk.expected_shortfall, (sample,)), (risk.kupiec_test, (returns, var)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"level must be the confidence level, such as 0.95, not the share 0.05"):
            function(*arguments, level=0.05)
        function(*arguments, level=0.95)


def test_value_at_risk_with_the_sign_turned_is_refused(returns, var):
    with pytest.raises(ValueError, match="value_at_risk must be positive for a loss; pass -value_at_risk; got exceed"):
        risk.kupiec_test(returns, -var)
    with pytest.raises(ValueError, match="in the unit and of the rows of returns; got exceedances='"):
        risk.christoffersen_test(-returns.abs(), var / 3)


def test_strategies_in_rows_are_refused(returns):
    table = returns.to_numpy()[:600].reshape(20, 30)
    with pytest.raises(ValueError, match=r"returns must be \(T, N\), a row for each date; pass returns.T"):
        risk.probability_of_backtest_overfitting(table, blocks=4)
    assert risk.probability_of_backtest_overfitting(table.T, blocks=4).logits.size == 6
    frame = pd.DataFrame(table.T, index=returns.index[:30])
    with pytest.raises(ValueError, match=r"losses must be \(T, K\), .*; pass losses.T"):
        risk.model_confidence_set(frame.T, block=2)
    with pytest.raises(ValueError, match=r"at least 20 outcomes in a row; returns.T has time last"):
        risk.value_at_risk(torch.tensor(table.T[:, :10]))


def test_number_of_trials_is_not_their_ratios(returns):
    with pytest.raises(
        ValueError, match=r"not their number; if only the number is known, pass expected_maximum_sharpe"
    ):
        risk.deflated_sharpe_ratio(returns, trials=100)
    benchmark = risk.expected_maximum_sharpe(0.5, 100)
    assert risk.probabilistic_sharpe_ratio(returns, benchmark) < risk.probabilistic_sharpe_ratio(returns)


def test_risk_free_return_is_per_row_everywhere(returns):
    r, rate = returns.to_numpy(), 0.0002
    assert risk.probabilistic_sharpe_ratio(r, risk_free=rate) == pytest.approx(
        risk.probabilistic_sharpe_ratio(r - rate)
    )
    trials = [0.2, -0.3, 0.9]
    assert risk.deflated_sharpe_ratio(r, trials, risk_free=rate) == risk.deflated_sharpe_ratio(r - rate, trials)
    assert portfolio.sharpe_ratio(r, risk_free=rate) == pytest.approx(portfolio.sharpe_ratio(r - rate))
    for function in (risk.probabilistic_sharpe_ratio, portfolio.sharpe_ratio):
        with pytest.raises(ValueError, match=r"risk_free must be per row, as 0.05 / 252 of a yearly rate"):
            function(r, risk_free=0.05)
