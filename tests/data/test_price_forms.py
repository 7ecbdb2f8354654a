"""Which prices are logs, and which may be zero or negative."""

from dataclasses import replace

import pytest

from torchcommodity import data
from torchcommodity.data import Panel, price_forms


def oil_spread() -> Panel:
    """Brent less WTI, of the embedded prices."""
    oil = data.embedded(["BRENT", "WTI"]).between("2010-01-01", "2020-12-31")
    brent, wti = oil.values.plain().unbind(1)
    return replace(oil["BRENT"], values=(brent - wti)[:, None], symbols=("SPREAD",), findings=()).drop_empty_rows()


def test_price_forms_of_a_spread_are_asinh() -> None:
    spread = oil_spread()
    (form,) = price_forms(spread)
    below = int((spread.values < 0).sum())
    assert (form.symbol, form.form) == ("SPREAD", "asinh")
    assert form.reason == f"{below} of {len(spread):,} prices are below zero"


def test_price_forms_leave_one_negative_price_in_logs() -> None:
    (form,) = price_forms(data.embedded(["WTI"]))
    assert form.form == "log"
    assert form.reason == "one price below zero, -36.98 on 2020-04-20: left out of returns"
    assert price_forms(data.embedded(["BRENT"]))[0].reason == ""


def test_price_forms_leave_a_number_for_missing_prices_in_logs() -> None:
    brent = data.embedded(["BRENT"]).between("2019-01-01", "2019-12-31")
    values = brent.values.plain().clone()
    values[[3, 9]] = -999.0
    missing = replace(brent, values=values)
    (form,) = price_forms(missing)
    assert str(form) == "BRENT log: 2 prices of -999: left out of returns"
    kinds = [finding.kind for finding in data.inspect(missing)]
    assert kinds.count("nonpositive") == 2
    assert "signed prices" not in kinds


def test_price_forms_leave_zeros_in_logs() -> None:
    brent = data.embedded(["BRENT"]).between("2019-01-01", "2019-12-31")
    values = brent.values.plain().clone()
    values[[3, 9]] = 0.0
    (form,) = price_forms(replace(brent, values=values))
    assert str(form) == "BRENT log: 2 prices of zero: left out of returns"


def test_price_forms_of_signed_symbols_are_asinh_whatever_the_prices() -> None:
    forms = price_forms(data.embedded(["BRENT", "WTI"]), signed=["BRENT"])
    assert [form.form for form in forms] == ["asinh", "log"]
    assert forms[0].reason.startswith("signed; 0 of ")


def test_price_forms_refuse_unknown_symbols_and_a_text() -> None:
    wti = data.embedded(["WTI"])
    with pytest.raises(ValueError, match="signed must name symbols of the prices, WTI; got BRENT"):
        price_forms(wti, signed=["BRENT"])
    with pytest.raises(TypeError, match="must be a list of names"):
        price_forms(wti, signed="WTI")
