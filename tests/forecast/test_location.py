"""What moved the median: the parts of the expected change, and the sentence about them."""

from dataclasses import replace

import pytest
import torch

from torchcommodity.data import Panel, embedded
from torchcommodity.forecast import Forecaster, fit
from torchcommodity.training import model_inputs


@pytest.fixture(scope="module")
def prices() -> Panel:
    return embedded().between(None, "2018-12-31")


@pytest.fixture(scope="module")
def forecaster(prices: Panel) -> Forecaster:
    return fit(prices)


def test_parts_sum_to_the_shift_of_the_model(forecaster: Forecaster, prices: Panel) -> None:
    table = forecaster.location(prices).to_pandas()
    total = table.groupby(["horizon", "symbol"])["log_return"].sum().unstack()[list(prices.symbols)]
    inputs = model_inputs(forecaster.align_panel(prices), 126, references=forecaster.references)
    with torch.no_grad():
        shift = forecaster.model.har(*inputs.batch(), last_rows=1).shift[0, -1]
    torch.testing.assert_close(torch.tensor(total.to_numpy()), shift, atol=1e-15, rtol=0)


def test_sentence_names_the_largest_parts_and_the_years_behind_them(forecaster: Forecaster, prices: Panel) -> None:
    location = forecaster.location(prices)
    text = location.sentence("WTI")
    assert text.startswith("3 months: 11 % cheap against PROPANE_MB: +0.2 %; 5 % dear against GASOLINE_USGC: -0.1 %")
    assert text.endswith("season: +1.7 % (32 years)")
    assert location.sentence("HENRY_HUB", 63) == "3 months: season: -1.0 %"
    assert str(location).splitlines()[0] == f"WTI, {text}"
    with pytest.raises(ValueError, match="sentence: symbol must be one of WTI, BRENT, HENRY_HUB; got 'GOLD'"):
        location.sentence("GOLD")
    with pytest.raises(ValueError, match=r"sentence: horizon must be one of .*, 63 \(3m\), .*; got 64"):
        location.sentence("WTI", 64)


def test_references_are_no_part_without_their_prices(forecaster: Forecaster, prices: Panel) -> None:
    sources = set(forecaster.location(prices.with_references(None)).to_pandas()["source"])
    assert sources == {*prices.symbols, "season"}


def test_limit_is_a_part_where_it_binds(forecaster: Forecaster, prices: Panel) -> None:
    cheap = prices.values.plain().clone()
    cheap[-1, 0] /= 100  # the expected return of a price that fell like this exceeds half a sigma
    fallen = Panel(cheap, prices.dates, prices.symbols, prices.units, prices.provenance, references=prices.references)
    table = forecaster.location(fallen).to_pandas()
    row = table[(table.symbol == "WTI") & (table.horizon == 126) & (table.source == "limit")]
    assert len(row) == 1
    assert row["log_return"].item() < 0


def test_parts_do_not_depend_on_later_rows_and_start_from_the_last_price(forecaster: Forecaster, prices: Panel) -> None:
    early = prices.between(None, "2015-06-30")
    changed = prices.values.plain().clone()
    changed[len(early) :] *= 2
    later = replace(prices, values=type(prices.values)(changed)).between(None, "2015-06-30")
    assert forecaster.location(later).parts == forecaster.location(early).parts
    ended = prices.values.plain().clone()
    ended[-30:, 0] = torch.nan  # WTI
    table = forecaster.location(replace(prices, values=type(prices.values)(ended))).to_pandas()
    last = forecaster.location(prices.between(None, str(prices.dates[-31]))).to_pandas()
    own, expected = (x[(x.symbol == "WTI") & x.deviation.notna()].reset_index(drop=True) for x in (table, last))
    assert own.equals(expected)


def test_symbol_of_which_nothing_is_known_says_so() -> None:
    short = embedded(["WTI"]).between("2016-12-01", "2018-12-31")  # fewer than 500 outcomes
    location = fit(short).location(short)
    assert location.parts == ()
    assert str(location) == "WTI, 3 months: no change expected"


def test_monthly_averages_and_one_symbol_say_what_is_known() -> None:
    gold = embedded(["GOLD"], frequency="monthly")
    assert fit(gold).location(gold).sentence("GOLD").startswith("6 months: ")
