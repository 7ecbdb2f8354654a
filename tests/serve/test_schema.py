"""What a request may be: every refusal names the instance and the field, and nothing else comes out of any bytes."""

import json
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torchcommodity.export import Metadata
from torchcommodity.serve._request_error import RequestError
from torchcommodity.serve.http import Limits
from torchcommodity.serve.http._response import prediction
from torchcommodity.serve.http._schema import parsed
from torchcommodity.serve.http._windows import Window, wanted, windows

ABOUT = Metadata(
    format="pt2",
    symbols=("WTI", "SP500"),
    units=("$/bbl", ""),
    contracts=(None, None),
    horizons=(5, 21),
    levels=(0.1, 0.5, 0.9),
    warmup=2,
    calendar=("1970-01-01", "2060-12-31"),
    provenance=(),
    trained_through="2018-12-31",
    model="har-garch",
    note="",
    version="0",
    torch="2",
)
DAYS = ["2018-12-27", "2018-12-28", "2018-12-31"]
ROWS = [[44.6, 2488.8], [45.1, 2485.7], [None, 2506.9]]


def request(**changed: Any) -> bytes:
    return json.dumps({"instances": [{"prices": ROWS, "dates": DAYS}], **changed}).encode()


def instance(**changed: Any) -> bytes:
    return request(instances=[{"prices": ROWS, "dates": DAYS}, {"prices": ROWS, "dates": DAYS, **changed}])


def cell(text: str) -> bytes:
    return instance().replace(b"45.1", text.encode(), 2)


def read(body: bytes) -> list[Window]:
    asked = parsed(body)
    wanted(asked.parameters, ABOUT)
    return windows(asked, ABOUT, Limits(rows=4, instances=3))


def test_rows_and_symbols_in_any_order_are_the_same() -> None:
    by_symbol = {"SP500": [row[1] for row in ROWS], "WTI": [row[0] for row in ROWS]}
    (rows,), (named,) = read(request()), read(request(instances=[{"prices": by_symbol, "dates": DAYS}]))
    assert rows.prices.tobytes() == named.prices.tobytes()
    assert np.isnan(rows.prices).tolist() == [[False, False], [False, False], [True, False]]
    assert rows.days.astype("datetime64[D]").astype(str).tolist() == DAYS


WRONG: list[tuple[bytes, int, str]] = [
    (b"", 400, "body: expected JSON"),
    (b"{", 400, "body: expected JSON"),
    (b'{"instances": [{"dates": ["\xff"]}]}', 400, "body: expected JSON; got invalid unicode"),
    (b"[" * 100_000, 400, "body: expected JSON; got recursion limit"),
    (cell("9" * 5000), 400, "body: expected JSON; got number out of range"),
    (b"[]", 422, "body: expected an object; got []"),
    (b"{}", 422, "instances: expected a field of this name; got none"),
    (b'{"instances": 3}', 422, "instances: expected an array; got 3"),
    (request(instances=[]), 422, "instances: expected 1 to 3 of them; got 0"),
    (request(instances=[{"prices": ROWS, "dates": DAYS}] * 4), 422, "instances: expected 1 to 3 of them; got 4"),
    (request(symbols=[]), 422, "symbols: expected no field but instances, parameters; got this one"),
    (instance(horizon=5), 422, "instances[1].horizon: expected no field but prices, dates; got this one"),
    (cell('"x"'), 422, 'instances[0].prices[1][0]: expected a number or null; got "x"'),
    (cell("true"), 422, "instances[0].prices[1][0]: expected a number or null; got true"),
    (cell("NaN"), 422, "instances[0].prices[1][0]: expected a finite number or null; got NaN"),
    (cell("1e400"), 422, "instances[0].prices[1][0]: expected a finite number or null; got Infinity"),
    (cell("1" + "0" * 400), 422, "instances[0].prices[1][0]: expected a finite number or null; got 1000"),
    (instance(prices=7), 422, "instances[1].prices: expected an array of rows, or an object of prices by symbol"),
    (instance(prices=[*ROWS[:2], [1.0]]), 422, "instances[1].prices[2]: expected 2 prices: WTI, SP500; got [1.0]"),
    (instance(prices=ROWS[:2]), 422, "instances[1].prices: expected as many rows as dates, 3; got 2"),
    (instance(prices={"WTI": [1, 2, 3]}), 422, "instances[1].prices.SP500: expected 3 prices; got null"),
    (instance(prices={"WTI": [1, 2], "SP500": [1, 2, 3]}), 422, "instances[1].prices.WTI: expected as many prices"),
    (instance(prices={"WTI": [1, 2, "x"]}), 422, 'instances[1].prices.WTI[2]: expected a number or null; got "x"'),
    (instance(prices={"GOLD": [1, 2, 3]}), 422, 'instances[1].prices: expected the symbols WTI, SP500; got "GOLD"'),
    (instance(dates=DAYS[:2]), 422, "instances[1].dates: expected 3 to 4 days; got 2"),
    (instance(dates=DAYS * 2), 422, "instances[1].dates: expected 3 to 4 days; got 6"),
    (instance(dates=[*DAYS[:2], DAYS[1]]), 422, "instances[1].dates[2]: expected a day after 2018-12-28, the row"),
    (instance(dates=DAYS[::-1]), 422, "instances[1].dates[1]: expected a day after 2018-12-31, the row before"),
    (instance(dates=[*DAYS[:2], "2018-02-30"]), 422, "instances[1].dates[2]: expected a day of the calendar"),
    (instance(dates=["0000-00-00", *DAYS[1:]]), 422, "instances[1].dates[0]: expected a day of the calendar"),
    (instance(dates=["1969-12-31", *DAYS[1:]]), 422, "instances[1].dates[0]: expected a day from 1970-01-01 to"),
    (instance(dates=["1545955200", *DAYS[1:]]), 422, "instances[1].dates[0]: expected a date as 2018-12-31"),
    (instance(dates=["\uff12018-12-27", *DAYS[1:]]), 422, "instances[1].dates[0]: expected a date as 2018-12-31"),
    (instance(dates=["2018-12-27T00:00", *DAYS[1:]]), 422, "instances[1].dates[0]: expected a date as 2018-12-31"),
    (request(parameters={"levels": [0.3]}), 422, "parameters.levels[0]: expected one of 0.1, 0.5, 0.9; got 0.3"),
    (request(parameters={"levels": []}), 422, "parameters.levels: expected 1 to 3 of 0.1, 0.5, 0.9; got 0"),
    (request(parameters={"horizons": [5.5]}), 422, "parameters.horizons[0]: expected a whole number; got 5.5"),
    (request(parameters={"quantity": "usd"}), 422, 'parameters.quantity: expected price or log_return; got "usd"'),
]  # fmt: skip


@pytest.mark.parametrize(("body", "status", "words"), WRONG, ids=[words[:60] for _, _, words in WRONG])
def test_a_refusal_names_the_place(body: bytes, status: int, words: str) -> None:
    with pytest.raises(RequestError) as refused:
        read(body)
    assert (refused.value.status, refused.value.message[: len(words)]) == (status, words)
    assert len(refused.value.message) < 300


def test_a_million_errors_are_one() -> None:
    for body in (cell(",".join(['"x"'] * 300_000)), request(**{f"field{i}": 1 for i in range(100_000)})):
        with pytest.raises(RequestError):
            read(body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from([*DAYS, *ABOUT.symbols]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["prices", "dates", "WTI", "SP500", "levels"]) | st.text(max_size=3), inner)
    ),
    max_leaves=12,
)


@given(st.builds(lambda x, i: request(**x) if i is None else instance(**i), st.fixed_dictionaries({}, optional={
    "instances": JSON, "parameters": JSON}), st.none() | st.fixed_dictionaries({}, optional={
    "prices": JSON, "dates": JSON})) | st.binary())  # fmt: skip
def test_any_bytes_are_windows_or_a_refusal(body: bytes) -> None:
    status, content = 200, b"{}"
    try:
        read(body)
    except RequestError as refused:
        status, content = refused.status, bytes(refused.response().body)
    assert status in (200, 400, 422)
    json.dumps(json.loads(content), allow_nan=False)


def test_what_is_missing_is_null_with_a_word_why() -> None:
    (window,) = read(request())
    quantiles = torch.tensor([[[-0.1, 0.0, 0.1]] * 2] * 2, dtype=torch.double)
    quantiles[:, 0] = torch.nan
    asked = parsed(request(parameters={"levels": [0.5], "horizons": [21]})).parameters
    answer = prediction(ABOUT, window, quantiles, wanted(asked, ABOUT))
    assert answer["quantiles"] == [[[None], [2506.9]]]
    assert (answer["origins"], answer["last"]) == (["2018-12-28", "2018-12-31"], [45.1, 2506.9])
    assert answer["notes"] == ["WTI: no forecast yet; it needs more than 2 positive prices and has 2"]
    nothing = Window(np.full((3, 2), np.nan), window.days)
    empty = prediction(ABOUT, nothing, quantiles, wanted(None, ABOUT))
    assert (empty["origins"], empty["last"]) == ([None, None], [None, None])
