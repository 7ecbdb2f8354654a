"""OpenAPI document: the request's schema has the symbols, sizes and outputs of the artifact."""

import copy
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from small_request import DATES, METADATA, PRICES

from torchcommodity.serve.http import Limits
from torchcommodity.serve.http._openapi import request_body, request_schemas
from torchcommodity.serve.http._worker import example_request, served_artifact

VALID: dict[str, Any] = {
    "instances": [{"prices": PRICES, "dates": DATES}],
    "parameters": {"levels": [0.1], "horizons": [5.0]},
}


def is_valid(request: Any, keeps_series: bool = False) -> bool:
    schemas = request_schemas(served_artifact(METADATA), Limits(max_rows=4), keeps_series)
    schema = schemas["PredictRequest"] | {"components": {"schemas": schemas}}
    return bool(jsonschema.Draft202012Validator(schema).is_valid(request))


def changed(**fields: Any) -> Any:
    request = copy.deepcopy(VALID)
    request["instances"][0].update(fields)
    return request


def test_openapi_schema_accepts_rows_and_prices_by_symbol() -> None:
    assert is_valid(VALID)
    assert is_valid(changed(prices={"WTI": [1, 0, None], "BRENT": [-37.63, 2, 3]}))


@pytest.mark.parametrize(
    "fields",
    [
        {"prices": PRICES[:2]},
        {"prices": [[1.0]] * 3},
        {"prices": [[1.0, 1e100]] * 3},
        {"prices": [[1.0, 1e-300]] * 3},
        {"prices": {"WTI": [1, 2, 3]}},
        {"prices": {"WTI": [1, 2, 3], "BRENT": [1, 2, 3], "GOLD": [1, 2, 3]}},
        {"dates": DATES[:2]},
        {"dates": DATES * 2},
        {"series": "oil"},
    ],
    ids=str,
)
def test_openapi_schema_refuses_what_the_artifact_refuses(fields: dict[str, Any]) -> None:
    assert not is_valid(changed(**fields))


def test_openapi_schema_has_levels_and_horizons_of_the_artifact() -> None:
    for parameters in ({"levels": [0.3]}, {"levels": []}, {"horizons": [6]}, {"horizons": [5.5]}):
        assert not is_valid(VALID | {"parameters": parameters})


def test_openapi_schema_has_series_if_the_server_keeps_them() -> None:
    assert is_valid(changed(series="oil", append=True, dates=DATES[:1], prices=PRICES[:1]), keeps_series=True)


def test_example_request_has_embedded_prices_of_the_minimum_length() -> None:
    example = example_request(METADATA)
    assert example is not None
    assert is_valid(example)
    assert request_body(served_artifact(METADATA))["content"]["application/json"]["example"] == example
    assert example_request(replace(METADATA, symbols=("WTI", "GOLD"))) is None
