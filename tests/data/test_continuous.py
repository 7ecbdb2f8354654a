"""Front months built from contracts: roll rules, adjustment, causality, and real contracts of 1995 to 2010."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torchcommodity import data, training
from torchcommodity.data import ContractPrices, DataError

RULES = ["expiry", "3d", "volume", "open-interest,1d", "months=FJNV", "volume,months=HMUZ"]


@cache
def market(code="CL", first="2019-01-02", last="2020-03-31"):
    """Quotes of contracts of one product as random walks that share their moves, with volume that moves on early."""
    rng = np.random.default_rng(0)
    product, days = data.CONTRACTS[code], np.arange(first, last, dtype="datetime64[D]")
    days = days[np.is_busday(days, busdaycal=data.business_calendar("US"))]
    months = np.arange(np.datetime64(first, "M"), np.datetime64(last, "M") + np.timedelta64(6, "M"))
    ends = product.last_trading_days(months)
    shared = rng.normal(0, 0.02, len(days)).cumsum()
    parts = []
    for k, (month, end) in enumerate(zip(months, ends)):
        own = days[(days <= end) & (days > end - np.timedelta64(300, "D"))]
        if not len(own):
            continue
        level = 4.0 + 0.01 * k + shared[np.isin(days, own)] + rng.normal(0, 0.003, len(own)).cumsum()
        left = (end - own).astype(int)
        parts.append(
            pd.DataFrame(
                {
                    "date": own, "symbol": code, "delivery": str(month), "settle": np.exp(level).round(4),
                    "volume": 1e4 * np.exp(-(((left - 45) / 20.0) ** 2)), "open_interest": 1e3 + 10.0 * left,
                }
            )
        )  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def build(table, rule="expiry", adjustment="none"):
    return ContractPrices.from_pandas(table).continuous(rule, adjustment)


def held_prices(panel, table):
    """Prices (T,) of the contract held on each row, and of the same contract on the row before."""
    wide = table.pivot(index="date", columns="delivery", values="settle").reindex(panel.dates)
    columns = wide.columns.get_indexer(panel.deliveries[:, 0].astype(str))
    values, rows = wide.to_numpy(), np.arange(len(panel))
    return values[rows, columns], np.append(np.nan, values[rows[1:] - 1, columns[1:]])


@pytest.mark.parametrize("rule", RULES)
def test_adjusted_series_earn_what_the_held_contracts_earn(rule):
    table = market()
    plain, ratio, panama = (build(table, rule, adjustment) for adjustment in ("none", "ratio", "panama"))
    now, before = held_prices(plain, table)
    np.testing.assert_array_equal(plain.values[:, 0].numpy(), now)
    assert (np.diff(plain.deliveries[:, 0]) > np.timedelta64(0, "M")).sum() > 3
    np.testing.assert_allclose(np.diff(np.log(ratio.values[:, 0].numpy())), np.log(now / before)[1:], atol=1e-12)
    np.testing.assert_allclose(np.diff(panama.values[:, 0].numpy()), (now - before)[1:], atol=1e-10)
    returns = training.roll_adjusted_returns(plain)[1:, 0].numpy()
    np.testing.assert_allclose(returns, np.log(now / before)[1:], atol=1e-12)
    for adjusted in (ratio, panama):
        assert adjusted.values[-1, 0] == plain.values[-1, 0]
        assert (adjusted.contracts, adjusted.curve, adjusted.deliveries) == ((None,), None, None)
        assert "adjusted" in [finding.kind for finding in adjusted.findings]


@pytest.mark.slow
@given(
    rule=st.sampled_from(RULES),
    cut=st.integers(20, 250),
    scale=st.floats(0.5, 2.0),
    drop=st.floats(0.0, 0.5),
    seed=st.integers(0, 99),
)
def test_unadjusted_series_do_not_depend_on_later_rows(rule, cut, scale, drop, seed):
    table = market()
    day = np.unique(table["date"])[cut]
    later = table[table["date"] > day].sample(frac=1.0 - drop, random_state=seed)
    changed = later.assign(settle=later["settle"] * scale, volume=later["volume"].to_numpy()[::-1])
    whole, other, past = (
        build(rows, rule).between(None, day)
        for rows in (table, pd.concat([table[table["date"] <= day], changed]), table[table["date"] <= day])
    )
    for panel in (other, past):
        np.testing.assert_array_equal(panel.values.numpy(), whole.values.numpy())
        np.testing.assert_array_equal(panel.deliveries, whole.deliveries)
        contracts = min(panel.curve.shape[-1], whole.curve.shape[-1])
        np.testing.assert_array_equal(panel.curve[..., :contracts].numpy(), whole.curve[..., :contracts].numpy())
        assert torch.equal(panel.rolls(ahead=0), whole.rolls(ahead=0))


@pytest.mark.slow
@given(seed=st.integers(0, 999), rule=st.sampled_from(RULES))
def test_order_of_rows_is_irrelevant(seed, rule):
    table = market()
    assert build(table.sample(frac=1.0, random_state=seed), rule).values.equal(build(table, rule).values)


def test_rolls_are_those_of_the_rule():
    table = market()
    by_expiry = build(table)
    assert torch.equal(by_expiry.rolls(ahead=126), replace(by_expiry, deliveries=None).rolls(ahead=126))
    assert not by_expiry.has_own_rolls
    early = build(table, "3d")
    days = {panel: panel.dates[panel.rolls(ahead=0)[:, 0] > 0] for panel in (by_expiry, early)}
    calendar = data.business_calendar("US")
    np.testing.assert_array_equal(np.busday_count(days[early], days[by_expiry], busdaycal=calendar), 3)
    ahead = [panel.rolls(ahead=60)[len(panel) :, 0].nonzero().ravel() for panel in (by_expiry, early)]
    np.testing.assert_array_equal(ahead[0] - ahead[1], [3, 3, 3])


def test_volume_and_open_interest_decide_on_the_row_before_and_never_go_back():
    days = pd.bdate_range("2020-01-02", periods=5)
    rows = [(day, "F20", 1.0, volume) for day, volume in zip(days, [9, 4, 9, 9, 9])]
    rows += [(day, "G20", 2.0, 5) for day in days]
    table = pd.DataFrame(rows, columns=["date", "contract", "settle", "volume"]).assign(symbol="X")
    assert build(table, "volume").values[:, 0].tolist() == [1.0, 1.0, 2.0, 2.0, 2.0]
    assert build(table.rename(columns={"volume": "oi"}), "open-interest").values[2, 0] == 2.0


def test_chosen_months_skip_others_and_report_them():
    panel = build(market(), "months=FJNV")
    assert set(panel.deliveries[:, 0].astype(int) % 12 + 1) <= {1, 4, 7, 10}
    assert "other delivery month" in [finding.kind for finding in panel.findings]
    now = panel.curve[0, 0]
    assert now.shape == (6,)
    assert panel.rolls(ahead=126)[len(panel) :].count_nonzero() == 2  # one in three months


def test_series_without_a_known_expiry():
    table = market().assign(symbol="XX")
    panel = build(table)
    assert panel.values.equal(build(market()).values)
    assert panel.contracts == (None,)
    finding = next(finding for finding in panel.findings if finding.kind == "unknown expiry")
    assert finding.count > 5
    ahead = panel.rolls(ahead=126)[len(panel) :].count_nonzero()
    assert 5 <= ahead <= 7
    with pytest.raises(DataError, match=r"known last trading days of 'XX' for 5d; .* \(--contracts XX=CL\)"):
        build(table, "5d")
    assert build(table.assign(expiry=table.groupby("delivery")["date"].transform("max")), "2d") is not None


def test_adjustment_without_a_common_day_is_missing():
    rows = [("2020-01-02", "F20", 1.0), ("2020-01-03", "G20", 2.0), ("2020-01-06", "G20", 3.0)]
    table = pd.DataFrame(rows, columns=["date", "contract", "settle"]).assign(symbol="X")
    panel = build(table, adjustment="ratio")
    assert panel.values[1:, 0].tolist() == [2.0, 3.0]
    assert panel.values[0, 0].isnan()
    assert "unknown roll gap" in [finding.kind for finding in panel.findings]


def test_negative_panama_prices_are_reported():
    table = market()
    panel = build(table.assign(settle=60.0 - table["settle"]), adjustment="panama")
    assert "signed prices" in [finding.kind for finding in panel.findings]


def test_late_contract_is_left_out_and_reported():
    rows = [("2020-01-02", "H20", 1.0), ("2020-01-03", "G20", 9.0), ("2020-01-03", "H20", 2.0)]
    panel = build(pd.DataFrame(rows, columns=["date", "contract", "settle"]).assign(symbol="X"))
    assert panel.values[:, 0].tolist() == [1.0, 2.0]
    assert "late contract" in [finding.kind for finding in panel.findings]


def test_several_products_join_on_all_days():
    gas = market("NG", "2019-03-01", "2020-01-31")
    panel = build(pd.concat([market(), gas]))
    assert panel.symbols == panel.contracts == ("CL", "NG")
    assert panel["NG"].between("2019-03-01", "2020-01-30").values.equal(build(gas).values)
    curve = ContractPrices.from_pandas(pd.concat([market(), gas])).curve()
    assert curve.symbols == ("CL", "NG")
    assert panel.with_curve(curve).curve.shape == panel.curve.shape


@pytest.mark.parametrize("adjustment", ["back", "", None])
def test_continuous_refuses_an_unknown_adjustment(adjustment):
    with pytest.raises(DataError, match="adjustment: expected none, panama, ratio; got"):
        build(market(), adjustment=adjustment)


def test_continuous_refuses_what_the_table_does_not_have():
    with pytest.raises(DataError, match="expected a column of volume for 'CL'; got none; roll by expiry or 5d"):
        build(market().drop(columns="volume"), "volume")
    with pytest.raises(DataError, match="expected contracts of 'NG' for delivery in the months"):
        build(market("NG", "2019-01-02", "2019-02-28").query("delivery < '2019-05'"), "months=Z")
