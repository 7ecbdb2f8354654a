"""The keywords that the functions which read a source have in common."""

import inspect
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from torchcommodity import data

TABLE = ["column", "symbol", "contract", "date", "encoding", "decimal", "date_order", "query_timeout"]
FUNCTIONS = {
    data.read: [*TABLE, "format"],
    data.to_panel: [*TABLE, "format"],
    data.read_bars: [*TABLE, "format"],
    data.read_contracts: TABLE,
    data.to_covariates: TABLE,
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_signature_ends_with_the_shared_keywords(function: Callable[..., Any]) -> None:
    parameters = list(inspect.signature(function).parameters.values())
    shared = parameters[-len(FUNCTIONS[function]) :]
    assert [parameter.name for parameter in shared] == FUNCTIONS[function]
    assert {(parameter.kind, parameter.default) for parameter in shared} == {(inspect.Parameter.KEYWORD_ONLY, None)}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_unknown_keyword_is_named_with_the_function(function: Callable[..., Any]) -> None:
    words = rf"^{function.__name__}\(\) got an unexpected keyword argument 'colum'$"
    with pytest.raises(TypeError, match=words):
        function("embedded", colum="close")


def test_read_contracts_takes_no_format() -> None:
    with pytest.raises(TypeError, match=r"^read_contracts\(\) got an unexpected keyword argument 'format'$"):
        data.read_contracts("prices.csv", format="contracts")  # type: ignore[call-arg]


def test_to_covariates_reads_dates_and_numbers_as_stated() -> None:
    stocks = pd.DataFrame({"date": ["05/01/2024", "12/01/2024"], "STOCKS": ["1,021", "1,500"], "RIGS": ["5", "6"]})
    with pytest.raises(data.DataError, match=r"\(date_order=\)"):
        data.to_covariates(stocks, lag="5D")
    covariates = data.to_covariates(stocks, lag="5D", column="STOCKS", date_order="dmy", decimal=",")
    assert covariates.as_of(["2024-01-10", "2024-01-17"]).values.ravel().tolist() == [1.021, 1.5]
    with pytest.raises(data.DataError, match=r"expected a column named 'OIL' .*column=.*; got date, STOCKS, RIGS"):
        data.to_covariates(stocks, lag="5D", column="OIL")


def test_to_covariates_reads_the_value_column_of_a_long_table() -> None:
    days = ["2024-01-05", "2024-01-12"]
    table = pd.DataFrame({"date": days, "symbol": "STOCKS", "value": [425.1, 424.8], "change": [0.2, -0.3]})
    covariates = data.to_covariates(table, lag="0D", column="value")
    assert covariates.as_of(days).values.ravel().tolist() == [425.1, 424.8]
