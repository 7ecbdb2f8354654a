"""`cached_backtest` and the span that it tests."""

import pytest

from torchcommodity import data, forecast


def test_backtest_span_leaves_out_young_symbols() -> None:
    panel = data.embedded()
    assert forecast.backtest_span(panel) == (["WTI", "BRENT", "HENRY_HUB"], (2020, 2026))
    assert forecast.backtest_span(panel, 2005) == (["WTI", "BRENT", "HENRY_HUB"], (2005, 2026))
    assert forecast.backtest_span(panel, 1995) == (["WTI", "BRENT"], (1995, 2026))
    with pytest.raises(
        ValueError,
        match="backtest: a symbol must have 5 years of prices before the first test year; got",
    ):
        forecast.backtest_span(panel.between("2023-01-01", None))


def test_cached_backtest_loads_what_it_stored() -> None:
    prices = data.embedded(["WTI", "HENRY_HUB"]).between("1994-01-01", "2001-12-31")
    first, was_cached = forecast.cached_backtest(prices, first_year=2001)
    assert not was_cached
    assert (first.symbols, first.excluded, first.first) == (("WTI",), ("HENRY_HUB",), "2001-01-02")
    second, was_cached = forecast.cached_backtest(prices, first_year=2001)
    assert was_cached
    assert second.to_json() == first.to_json()
    assert not forecast.cached_backtest(prices["WTI"], first_year=2001)[1]  # other symbols are excluded
