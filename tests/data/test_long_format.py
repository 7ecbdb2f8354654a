"""How a long table is read is decided from its first rows, by the rules of `read`."""

import pandas as pd
import pytest

from torchcommodity import data

DAYS = ["2024-01-30", "2024-01-31", "2024-02-01"]
PLAIN = pd.DataFrame({"date": DAYS, "symbol": "WTI", "price": [77.82, 75.85, 73.82]})
WRITTEN = {
    "plain": (PLAIN, ["2024-02-05"], ["72.78"]),
    "dates of Germany": (PLAIN.assign(date=["30.01.2024", "31.01.2024", "01.02.2024"]), ["05.02.2024"], ["72.78"]),
    "days first": (PLAIN.assign(date=["30/01/2024", "31/01/2024", "01/02/2024"]), ["05/02/2024"], ["72.78"]),
    "integers": (PLAIN.assign(date=[20240130, 20240131, 20240201]), ["20240205"], ["72.78"]),
    "decimal commas": (PLAIN.assign(price=["77,82", "75,85", "73,82"]), ["2024-02-05"], ["72,78"]),
    "thousands": (PLAIN.assign(price=["1,077.82", "75.85", "73.82"]), ["2024-02-05"], ["0,072.78"]),
    "one bad price": (PLAIN.assign(price=["77.82", "n.a.", "73.82"]), ["2024-02-05"], ["72.78"]),
    "one bad date": (PLAIN.assign(date=["n.a.", *DAYS[1:]]), ["2024-02-05"], ["72.78"]),
}


@pytest.mark.parametrize("written", WRITTEN)
def test_long_format_reads_dates_and_prices_as_they_are_written(written: str) -> None:
    rows, dates, prices = WRITTEN[written]
    form = data.LongFormat.detect(rows, "panels")
    assert (form.date, form.symbol, form.price) == (0, 1, 2)
    assert form.parse_dates(dates).values.astype(str).tolist() == ["2024-02-05"]
    assert form.parse_prices(prices).values.tolist() == [72.78]


@pytest.mark.parametrize("names", [("ds", "unique_id", "y"), ("Datum", "Rohstoff", "Kurs"), ("date", "id", "Settle")])
def test_long_format_finds_the_columns_that_read_finds(names: tuple[str, ...]) -> None:
    form = data.LongFormat.detect(PLAIN.set_axis(names, axis=1).assign(volume=1), "panels")
    assert (form.date, form.symbol, form.price) == (0, 1, 2)


REFUSED = {
    "wide": (PLAIN.drop(columns="symbol"), "expected columns of dates, symbols and prices; got date, price"),
    "two prices": (PLAIN.assign(value=1.0), "expected one price column; got price, value"),
    "dates in two ways": (PLAIN.assign(date="01/02/2024"), "'date': day and month can be mistaken"),
    "no dates": (PLAIN.assign(date="n.a."), "'date': expected a date, such as 2020-04-20; got 'n.a.'"),
    "integers of Databento": (
        pd.DataFrame({"ts_event": DAYS, "symbol": "CL", "open": 1, "high": 1, "low": 1, "close": 70380000000}),
        "'close': expected prices; got Databento's integers in units of 1e-9",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_long_format_refuses_what_it_cannot_decide(kind: str) -> None:
    rows, message = REFUSED[kind]
    with pytest.raises(data.DataError, match=f"^panels: {message}"):
        data.LongFormat.detect(rows, "panels")


def test_long_format_leaves_an_ambiguous_number_to_its_row() -> None:
    form = data.LongFormat.detect(PLAIN.assign(price=["77.82", "75,85", "73.82"]), "panels")
    parsed = form.parse_prices(["77.82", "75,85"])
    assert parsed.bad.tolist() == [False, True]
    assert "decimal comma; got '75,85'" in parsed.problem(1)
