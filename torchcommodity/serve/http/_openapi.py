"""OpenAPI document of a server: the schema of a request has the symbols, sizes and outputs of its artifact."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from torchcommodity.serve.http._limits import Limits
from torchcommodity.serve.http._messages import ServedArtifact
from torchcommodity.serve.http._request import PredictRequest

Schema = dict[str, Any]
SEMANTICS = (
    "JSON Schema cannot express four rules, whose violation is a 422 too: dates ascend, none is in the future, their "
    "spacing is that of the training prices, and there is one row or price per date."
)
PRICE = {
    "description": "A price; null is a missing one, and so is one that is not positive",
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 1e-100, "exclusiveMaximum": 1e100},
        {"type": "number", "exclusiveMinimum": -1e100, "exclusiveMaximum": -1e-100},
        {"const": 0},
        {"type": "null"},
    ],
}


def openapi_document(app: FastAPI, artifact: ServedArtifact, limits: Limits, keeps_series: bool) -> Schema:
    """OpenAPI document of an application.

    Args:
        app: the application.
        artifact: what it serves.
        limits: of its requests.
        keeps_series: whether requests may have `series` and `append`.
    """
    document = get_openapi(title=app.title, version=app.version, routes=app.routes)
    document["components"]["schemas"] |= request_schemas(artifact, limits, keeps_series)
    return document


def request_schemas(artifact: ServedArtifact, limits: Limits, keeps_series: bool) -> dict[str, Schema]:
    """JSON schemas of a request by name."""
    request = PredictRequest.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas: dict[str, Schema] = request.pop("$defs") | {"PredictRequest": request, "Price": PRICE}
    request["properties"]["instances"] |= {"minItems": 1, "maxItems": limits.max_instances}
    fields, columns = schemas["Instance"]["properties"], list(artifact.columns)
    rows = {"minItems": 1 if keeps_series else artifact.min_rows, "maxItems": limits.max_rows}
    price = {"$ref": "#/components/schemas/Price"}
    row = {"type": "array", "items": price, "minItems": len(columns), "maxItems": len(columns)}
    by_symbol = {
        "type": "object",
        "properties": {symbol: {"type": "array", "items": price, **rows} for symbol in columns},
        "required": list(artifact.symbols),
        "additionalProperties": False,
    }
    fields["prices"]["anyOf"] = [{"type": "array", "items": row, **rows}, by_symbol]
    first, last = artifact.calendar
    order = f"T {artifact.frequency} dates in ascending order, from {first} to {last}"
    fields["dates"] |= {"description": order, **rows}
    fields["dates"]["items"] |= {"formatMinimum": first, "formatMaximum": last}
    if not keeps_series:
        del fields["series"], fields["append"]
    parameters = schemas["Parameters"]["properties"]
    for name, values in (("levels", artifact.levels), ("horizons", artifact.horizons)):
        array = next(branch for branch in parameters[name]["anyOf"] if branch["type"] == "array")
        array |= {"items": array["items"] | {"enum": list(values)}, "minItems": 1, "maxItems": len(values)}
    return schemas


def request_body(artifact: ServedArtifact) -> Schema:
    """`requestBody` of the predict route."""
    content: Schema = {"schema": {"$ref": "#/components/schemas/PredictRequest"}}
    if artifact.example is not None:
        content["example"] = artifact.example
    return {"required": True, "description": SEMANTICS, "content": {"application/json": content}}
