"""Rows that the server keeps: new rows give the window of the full request; errors name the field."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import small_request
from small_request import METADATA

from torchcommodity.serve._request_error import RequestError
from torchcommodity.serve.http import Limits
from torchcommodity.serve.http._messages import PriceWindow
from torchcommodity.serve.http._request import parse_request
from torchcommodity.serve.http._series import SeriesCache
from torchcommodity.serve.http._windows import make_windows
from torchcommodity.serve.http._worker import served_artifact

ARTIFACT = served_artifact(replace(METADATA, warmup=1))  # a history has three rows
DATES = ["2018-12-26", *small_request.DATES]
PRICES = [[46.2, 54.5], *small_request.PRICES]


def window(cache: SeriesCache, rows: slice, owner: str = "", **fields: Any) -> PriceWindow:
    body = json.dumps({"instances": [{"prices": PRICES[rows], "dates": DATES[rows], **fields}]}).encode()
    (result,) = make_windows(parse_request(body), ARTIFACT, Limits(max_rows=4), cache, owner)
    return result


@pytest.fixture
def series() -> SeriesCache:
    return SeriesCache(2)


def test_new_rows_give_the_window_of_the_full_request(series: SeriesCache) -> None:
    window(series, slice(0, 3), series="oil")
    expected = window(SeriesCache(0), slice(0, 4))
    for _ in range(2):  # also if a client repeats its request
        result = window(series, slice(3, 4), series="oil", append=True)
        assert np.array_equal(result.prices, expected.prices, equal_nan=True)
        assert np.array_equal(result.days, expected.days)


@pytest.mark.parametrize(
    ("rows", "fields", "message"),
    [
        (
            slice(3, 4),
            {"series": "gas"},
            r'instances\[0\].series: expected a series that the server keeps.*; got "gas"',
        ),
        (slice(3, 4), {}, r"instances\[0\].series: expected the name of the series to which the rows are appended"),
        (
            slice(0, 1),
            {"series": "oil", "dates": ["2018-12-25"]},
            r"dates\[0\]: expected a date after 2018-12-28, the last",
        ),
        (
            slice(0, 1),
            {"series": "oil", "prices": [[1.0, 2.0]]},
            r"dates\[0\]: expected a date after 2018-12-28, the last",
        ),
        (slice(3, 4), {"series": ""}, r"instances\[0\].series: expected at least one character"),
        (slice(3, 4), {"series": "oil", "append": 1}, r"instances\[0\].append: expected true or false; got 1"),
    ],
    ids=["unknown series", "no name", "earlier row", "another price", "empty name", "not a bool"],
)
def test_new_rows_are_refused_in_words(series: SeriesCache, rows: slice, fields: dict[str, Any], message: str) -> None:
    window(series, slice(0, 3), series="oil")
    with pytest.raises(RequestError, match=message):
        window(series, rows, **{"append": True, **fields})


def test_series_belongs_to_the_token_that_began_it(series: SeriesCache) -> None:
    window(series, slice(0, 3), "one", series="oil")
    with pytest.raises(RequestError, match="a series that the server keeps: send its history again"):
        window(series, slice(3, 4), "other", series="oil", append=True)
    window(series, slice(0, 3), "other", series="oil")
    for owner in ("one", "other"):
        assert len(window(series, slice(3, 4), owner, series="oil", append=True).days) == 4


def test_rows_are_kept_only_with_the_option_live() -> None:
    with pytest.raises(
        RequestError, match=r"instances\[0\].series: expected no name: the server keeps no series .*--live"
    ):
        window(SeriesCache(0), slice(0, 4), series="oil")


def test_series_cache_drops_the_least_recently_used_series(series: SeriesCache) -> None:
    for name in ("oil", "gas", "oil", "coal"):
        window(series, slice(0, 3), series=name)
    window(series, slice(3, 4), series="oil", append=True)
    with pytest.raises(RequestError, match='a series that the server keeps: send its history again; got "gas"'):
        window(series, slice(3, 4), series="gas", append=True)
