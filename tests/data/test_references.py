"""References of a panel: prices that help to forecast the others, and what keeps or drops them."""

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from torchcommodity import data
from torchcommodity.data import DataError, Panel, add_references, embedded, to_panel


@pytest.fixture(scope="module")
def oil() -> Panel:
    return embedded(["WTI", "BRENT", "HENRY_HUB"]).between("2012-01-01", "2014-12-31")


@pytest.fixture(scope="module")
def wti(oil: Panel) -> Panel:
    return oil.with_references(["BRENT", "HENRY_HUB"])


def names(panel: Panel) -> tuple[str, ...]:
    return () if panel.references is None else panel.references.symbols


def test_references_by_name_leave_the_symbols_and_the_rows_without_a_symbol(oil: Panel, wti: Panel) -> None:
    assert (wti.symbols, names(wti)) == (("WTI",), ("BRENT", "HENRY_HUB"))
    traded = torch.isfinite(oil.values.plain()[:, 0]).numpy()
    assert not traded.all()
    assert np.array_equal(wti.dates, oil.dates[traded])
    assert wti.references is not None
    expected = oil.values.plain()[torch.from_numpy(traded), 1:]
    torch.testing.assert_close(wti.references.values.plain(), expected, rtol=0, atol=0, equal_nan=True)
    assert wti.references.units == oil.units[1:]


def test_references_of_a_panel_are_on_its_dates_and_other_than_its_symbols(oil: Panel, wti: Panel) -> None:
    other = oil["WTI"].drop_empty_rows().with_references(oil)
    assert other.equals(wti)
    later = oil.between("2013-01-01")
    short = oil["WTI"].drop_empty_rows().with_references(later)
    assert short.references is not None
    early = short.dates < np.datetime64("2013-01-01")
    assert bool(short.references.values.plain()[torch.from_numpy(early)].isnan().all())
    assert names(wti.with_references(oil)) == names(wti)  # nothing to add


def test_references_add_to_those_that_there_are(oil: Panel) -> None:
    panel = oil.with_references(["BRENT"]).with_references(["HENRY_HUB"])
    assert names(panel) == ("BRENT", "HENRY_HUB")
    assert panel.with_references(None).references is None
    assert panel.with_references([]) is panel


def test_references_that_cannot_be_used_are_named(oil: Panel) -> None:
    with pytest.raises(DataError, match="symbols: expected names among WTI, BRENT, HENRY_HUB; got 'GOLD'"):
        oil.with_references(["GOLD"])
    with pytest.raises(
        DataError, match="references: expected a symbol that is not a reference, to be forecast; got no"
    ):
        oil.with_references(oil.symbols)
    with pytest.raises(DataError, match="expected further symbols on dates of the panel; got the symbols WTI"):
        oil.with_references(oil["WTI"])
    with pytest.raises(DataError, match=r"expected further symbols on dates of the panel; got 2000-.* for 2012-"):
        oil["WTI"].with_references(embedded(["BRENT"]).between("2000-01-01", "2000-12-31"))
    with pytest.raises(TypeError, match="with_references"):
        oil.with_references("BRENT")
    with pytest.raises(
        DataError, match="panel: expected references on the dates of the panel; got others; see with_re"
    ):
        replace(oil["WTI"], references=oil.select(["BRENT"])._rows(np.arange(len(oil)) < 9))
    with pytest.raises(DataError, match="panel: expected references other than its symbols; got WTI"):
        replace(oil["WTI"], references=oil["WTI"])


def test_references_follow_rows_and_symbols(oil: Panel) -> None:
    panel = oil.with_references(["HENRY_HUB"])
    cut = panel.select(["BRENT"]).between("2013-01-01", "2013-12-31").drop_empty_rows()
    assert names(cut) == ("HENRY_HUB",)
    assert cut.references is not None
    assert np.array_equal(cut.references.dates, cut.dates)
    for other in (
        panel.with_contracts({"WTI": "CL"}),
        panel.with_averages(),
        to_panel(panel),
        pickle.loads(pickle.dumps(panel)),
    ):
        assert names(other) == ("HENRY_HUB",)


def test_references_are_part_of_equality_and_of_the_text(oil: Panel, wti: Panel) -> None:
    assert wti.equals(pickle.loads(pickle.dumps(wti)))
    assert not wti.equals(wti.with_references(None))
    assert not wti.equals(oil.with_references(["HENRY_HUB"]).select(["WTI"]))
    assert repr(wti).endswith("1 symbol: WTI; 2 references: BRENT, HENRY_HUB)")


def test_add_references_takes_what_to_panel_takes(oil: Panel, wti: Panel) -> None:
    own = oil["WTI"].drop_empty_rows()
    assert names(add_references(own, oil.to_pandas())) == ("BRENT", "HENRY_HUB")
    assert add_references(oil, ["BRENT", "HENRY_HUB"]).equals(wti)
    assert add_references(own) is own
    assert len(names(add_references(own, "embedded"))) == 11
    monthly = embedded(["GOLD"], frequency="monthly")
    assert len(names(add_references(monthly, "embedded"))) == 70


def test_add_references_of_weekly_prices_must_be_weekly(oil: Panel) -> None:
    fridays = oil.to_pandas()[["WTI"]].resample("W-FRI").last()
    with pytest.raises(DataError, match="references must be weekly, as the prices; got 'embedded'"):
        add_references(to_panel(fridays), "embedded")


def test_default_panels_have_the_other_series_as_references_and_named_ones_have_none() -> None:
    assert len(names(embedded())) == 9
    assert len(names(embedded(frequency="monthly"))) == 33
    assert names(embedded(["WTI"])) == ()


def test_tables_have_the_symbols_only(wti: Panel) -> None:
    """References are prices of others: a table, a file and a store of a panel are of its symbols."""
    assert list(wti.to_pandas().columns) == ["WTI"]
    assert set(wti.to_pandas("long").symbol) == {"WTI"}
    assert {source["symbol"] for source in wti.sources()} == {"WTI"}
    assert names(to_panel(wti.to_pandas())) == ()


def test_store_keeps_the_symbols_and_references_are_added_again(wti: Panel, oil: Panel, tmp_path: Path) -> None:
    store = data.Store(tmp_path / "prices.duckdb")
    store.add(wti, "oil")
    read = store.load("oil")
    assert names(read) == ()
    assert add_references(read, oil).equals(wti)
