"""Predict requests: each invalid one raises one error that names its field; no input raises anything else."""

import json
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_request import DATES, METADATA, PRICES

from torchcommodity.serve._request_error import RequestError
from torchcommodity.serve.http import Limits
from torchcommodity.serve.http._messages import PriceWindow
from torchcommodity.serve.http._prediction import encode_prediction
from torchcommodity.serve.http._request import Parameters, parse_request
from torchcommodity.serve.http._series import SeriesCache
from torchcommodity.serve.http._windows import make_windows, select_outputs
from torchcommodity.serve.http._worker import served_artifact

ARTIFACT = served_artifact(METADATA)


def request(**fields: Any) -> bytes:
    """Valid request with other or additional fields."""
    return json.dumps({"instances": [{"prices": PRICES, "dates": DATES}], **fields}).encode()


def instance(**fields: Any) -> bytes:
    """Valid request whose second instance has other or additional fields."""
    return request(instances=[{"prices": PRICES, "dates": DATES}, {"prices": PRICES, "dates": DATES, **fields}])


def cell(text: str) -> bytes:
    """Valid request with other text in place of one price."""
    return instance().replace(b"45.1", text.encode(), 2)


def windows(body: bytes) -> list[PriceWindow]:
    parsed = parse_request(body)
    select_outputs(parsed.parameters, ARTIFACT)
    return make_windows(parsed, ARTIFACT, Limits(max_rows=4, max_instances=3), SeriesCache(0))


def test_make_windows_of_rows_equal_those_of_prices_by_symbol() -> None:
    by_symbol = {"BRENT": [row[1] for row in PRICES], "WTI": [row[0] for row in PRICES]}
    (rows,) = windows(request())
    (columns,) = windows(request(instances=[{"prices": by_symbol, "dates": DATES}]))
    assert rows.prices.tobytes() == columns.prices.tobytes()
    assert np.isnan(rows.prices).tolist() == [[False, False], [False, False], [True, False]]
    assert rows.days.astype("datetime64[D]").astype(str).tolist() == DATES


INVALID: list[tuple[bytes, int, str]] = [
    (b"", 400, "body: expected JSON"),
    (b"{", 400, "body: expected JSON"),
    (b'{"instances": [{"dates": ["\xff"]}]}', 400, "body: expected JSON; got invalid unicode"),
    (b"[" * 100_000, 400, "body: expected JSON; got recursion limit"),
    (cell("9" * 5000), 400, "body: expected JSON; got number out of range"),
    (b"[]", 422, "body: expected an object; got []"),
    (b"{}", 422, "instances: required field is missing"),
    (b'{"instances": 3}', 422, "instances: expected an array; got 3"),
    (request(instances=[]), 422, "instances: expected 1 to 3 instances; got 0"),
    (request(instances=[{"prices": PRICES, "dates": DATES}] * 4), 422, "instances: expected 1 to 3 instances; got 4"),
    (request(symbols=[]), 422, "symbols: unknown field; expected only instances, parameters"),
    (instance(horizon=5), 422, "instances[1].horizon: unknown field; expected only prices, dates"),
    (cell('"x"'), 422, 'instances[0].prices[1][0]: expected a number or null; got "x"'),
    (request(parameters={"levels": ["0.5"]}), 422, 'parameters.levels[0]: expected a number; got "0.5"'),
    (cell("true"), 422, "instances[0].prices[1][0]: expected a number or null; got true"),
    (cell("NaN"), 422, "instances[0].prices[1][0]: expected a finite number or null; got NaN"),
    (cell("1e400"), 422, "instances[0].prices[1][0]: expected a finite number or null; got Infinity"),
    (cell("1e300"), 422, "instances[0].prices[1][0]: expected zero, or a magnitude from 1e-100 to 1e100; got 1e+300"),
    (instance(prices={"WTI": [1, 2, 3], "BRENT": [1, 5e-324, 3]}), 422, "instances[1].prices.BRENT[1]: expected zero"),
    (cell("1" + "0" * 400), 422, "instances[0].prices[1][0]: expected a finite number or null; got 1000"),
    (instance(prices=7), 422, "instances[1].prices: expected an array of rows, or an object of prices by symbol"),
    (instance(prices=[*PRICES[:2], [1.0]]), 422, "instances[1].prices[2]: expected 2 prices (WTI, BRENT); got [1.0]"),
    (instance(prices=PRICES[:2]), 422, "instances[1].prices: expected 3 rows, one per date; got 2"),
    (instance(prices={"WTI": [1, 2, 3]}), 422, "instances[1].prices.BRENT: expected 3 prices; got null"),
    (instance(prices={"WTI": [1, 2], "BRENT": [1, 2, 3]}), 422, "instances[1].prices.WTI: expected 3 prices, one per"),
    (instance(prices={"WTI": [1, 2, "x"]}), 422, 'instances[1].prices.WTI[2]: expected a number or null; got "x"'),
    (instance(prices={"GOLD": [1, 2, 3]}), 422, 'instances[1].prices: expected the symbols WTI, BRENT; got "GOLD"'),
    (instance(dates=DATES[:2]), 422, "instances[1].dates: expected 3 to 4 dates; got 2"),
    (instance(dates=DATES * 2), 422, "instances[1].dates: expected 3 to 4 dates; got 6"),
    (instance(dates=[*DATES[:2], DATES[1]]), 422, "instances[1].dates[2]: expected a date after 2018-12-28, the prev"),
    (instance(dates=DATES[::-1]), 422, "instances[1].dates[1]: expected a date after 2018-12-31, the previous row's"),
    (instance(dates=[*DATES[:2], "2018-02-30"]), 422, "instances[1].dates[2]: expected a valid date such as 2018"),
    (instance(dates=["0000-00-00", *DATES[1:]]), 422, "instances[1].dates[0]: expected a valid date such as 2018"),
    (instance(dates=["1969-12-31", *DATES[1:]]), 422, "instances[1].dates[0]: expected a date from 1970-01-01 to"),
    (instance(dates=[*DATES[:2], "2059-12-31"]), 422, "instances[1].dates[2]: expected a date up to 20"),
    (instance(dates=["1545955200", *DATES[1:]]), 422, "instances[1].dates[0]: expected a date such as 2018-12-31"),
    (instance(dates=["\uff12018-12-27", *DATES[1:]]), 422, "instances[1].dates[0]: expected a date such as 2018-12-31"),
    (instance(dates=["2018-12-27T00:00", *DATES[1:]]), 422, "instances[1].dates[0]: expected a date such as 2018-12-"),
    (instance(dates=["2018-10-31", "2018-11-30", "2018-12-31"]), 422, "instances[1].dates: expected daily prices, as"),
    (request(parameters={"levels": [0.3]}), 422, "parameters.levels[0]: expected one of 0.1, 0.5, 0.9; got 0.3"),
    (request(parameters={"levels": []}), 422, "parameters.levels: expected 1 to 3 of 0.1, 0.5, 0.9; got 0"),
    (request(parameters={"horizons": [5.5]}), 422, "parameters.horizons[0]: expected an integer, or a text such as"),
    (request(parameters={"horizons": ["2w"]}), 422, 'parameters.horizons[0]: expected one of 5, 21; got "2w"'),
    (request(parameters={"horizons": ["soon"]}), 422, 'parameters.horizons[0]: expected one of 5, 21; got "soon"'),
    (request(parameters={"quantity": "usd"}), 422, 'parameters.quantity: expected price or log_return; got "usd"'),
]  # fmt: skip


@pytest.mark.parametrize(("body", "status", "message"), INVALID, ids=[message[:60] for _, _, message in INVALID])
def test_invalid_request_names_the_field(body: bytes, status: int, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        windows(body)
    assert (caught.value.status, caught.value.message[: len(message)]) == (status, message)
    assert len(caught.value.message) < 300


def test_parse_request_reports_one_of_many_errors() -> None:
    for body in (cell(",".join(['"x"'] * 300_000)), request(**{f"field{i}": 1 for i in range(100_000)})):
        with pytest.raises(RequestError) as caught:
            windows(body)
        assert len(caught.value.message) < 300


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from([*DATES, *METADATA.symbols]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["prices", "dates", "WTI", "BRENT", "levels"]) | st.text(max_size=3), inner)
    ),
    max_leaves=12,
)
REQUEST_FIELDS = st.fixed_dictionaries({}, optional={"instances": JSON, "parameters": JSON})
INSTANCE_FIELDS = st.none() | st.fixed_dictionaries({}, optional={"prices": JSON, "dates": JSON})
BODIES = st.binary() | st.builds(
    lambda request_fields, fields: request(**request_fields) if fields is None else instance(**fields),
    REQUEST_FIELDS,
    INSTANCE_FIELDS,
)


@given(BODIES)
def test_any_body_makes_windows_or_a_request_error(body: bytes) -> None:
    status, content = 200, b"{}"
    try:
        windows(body)
    except RequestError as error:
        status, content = error.status, bytes(error.response().body)
    assert status in (200, 400, 422)
    json.dumps(json.loads(content), allow_nan=False)


def predict(window: PriceWindow, quantiles: Any, parameters: Parameters | None = None) -> Any:
    selection = select_outputs(parameters, ARTIFACT)
    return json.loads(encode_prediction(METADATA, window, selection, torch.from_numpy(quantiles)))


def test_prediction_is_null_with_a_note_during_warmup() -> None:
    (window,) = windows(request())
    quantiles = np.array([[[-0.1, 0.0, 0.1]] * 2] * 2)
    quantiles[:, 0] = np.nan
    parameters = parse_request(request(parameters={"levels": [0.5], "horizons": ["1m"]})).parameters
    response = predict(window, quantiles, parameters)
    assert response["quantiles"] == [[[None], [53.8]]]
    assert (response["origins"], response["last"]) == (["2018-12-28", "2018-12-31"], [45.1, 53.8])
    assert response["notes"][0] == "WTI: no forecast yet: needs more than 2 positive prices; has 2"
    assert [finding["kind"] for finding in response["findings"]] == ["old prices"]
    without_prices = PriceWindow(np.full((3, 2), np.nan), window.days)
    response = predict(without_prices, quantiles)
    assert (response["origins"], response["last"]) == ([None, None], [None, None])
