"""Predict requests, by Vertex AI's contract for custom containers: their JSON schema, and parsing by it."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AllowInfNan, BaseModel, ConfigDict, Field, PlainValidator, Strict, ValidationError
from pydantic_core import PydanticCustomError

from torchcommodity.serve._request_error import RequestError, invalid_field


def _horizon(value: Any) -> int | str:
    rows = int(value) if isinstance(value, float) and value.is_integer() else value  # JSON has one type of number
    if isinstance(rows, bool) or not isinstance(rows, int | str):
        raise PydanticCustomError("horizon_type", "an integer, or a text such as 1m")
    return rows


FAIL_FAST = Field(fail_fast=True)  # report the first error; pydantic would collect millions of them
Price = Annotated[float, Strict(), AllowInfNan(False)] | None
PriceSeries = Annotated[list[Price], FAIL_FAST]
PriceRows = Annotated[list[PriceSeries], FAIL_FAST]
PricesBySymbol = Annotated[dict[str, PriceSeries], FAIL_FAST]
Date = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", json_schema_extra={"format": "date"})]
SeriesName = Annotated[str, Field(min_length=1, max_length=128)]
Level = Annotated[float, Strict(), AllowInfNan(False)]
Horizon = Annotated[int | str, PlainValidator(_horizon, json_schema_input_type=int | str)]

# pydantic would collect one error per unknown field: let them pass, and have `parse_request` report the first
REQUEST_CONFIG = ConfigDict(extra="allow", strict=True, json_schema_extra={"additionalProperties": False})


class Instance(BaseModel):
    """Price history to forecast from, oldest row first."""

    model_config = REQUEST_CONFIG
    prices: Annotated[
        PriceRows | PricesBySymbol,
        Field(
            union_mode="left_to_right",
            description="Either T rows of prices, in the order of the artifact's symbols, references, closes and bars, "
            "or an object that maps each of them to its T prices; all but the symbols may be left out of it. null is a "
            "missing price.",
        ),
    ]
    dates: Annotated[list[Date], FAIL_FAST] = Field(description="T dates in ascending order")
    series: SeriesName | None = Field(
        default=None,
        description="Name under which the server keeps the rows for later requests; the server must run with --live",
    )
    append: bool = Field(default=False, description="The rows follow those that the server keeps of the series")


class Parameters(BaseModel):
    """Outputs to return for every instance."""

    model_config = REQUEST_CONFIG
    levels: Annotated[list[Level], FAIL_FAST] | None = Field(
        default=None, description="Quantile levels, out of the artifact's; all by default"
    )
    horizons: Annotated[list[Horizon], FAIL_FAST] | None = Field(
        default=None, description="Horizons out of the artifact's, in rows ahead or as texts such as 1m; all by default"
    )
    quantity: Literal["price", "log_return"] = Field(
        default="price", description="Quantiles of the price, or of the cumulative log-return"
    )


class PredictRequest(BaseModel):
    """Instances to forecast; the predictions come in the same order."""

    model_config = REQUEST_CONFIG
    instances: Annotated[list[Instance], FAIL_FAST] = Field(json_schema_extra={"minItems": 1})
    parameters: Parameters | None = None


def parse_request(body: bytes) -> PredictRequest:
    """Parse the JSON body of a predict request.

    Raises:
        RequestError: 400 for invalid JSON, 422 with the first field that does not match the schema.
    """
    try:
        request = PredictRequest.model_validate_json(body)
    except ValidationError as error:
        raise _first_error(error) from None
    parts: dict[str, BaseModel] = {f"instances[{i}]": instance for i, instance in enumerate(request.instances)}
    if request.parameters is not None:
        parts["parameters"] = request.parameters
    for parent, part in {"": request, **parts}.items():
        for name in part.model_extra or ():
            fields, field = ", ".join(type(part).model_fields), f"{parent}.{name[:60]}".removeprefix(".")
            raise RequestError(422, f"{field}: unknown field; expected only {fields}", field)
    return request


EXPECTED = {  # by pydantic's type of error
    "bool_type": "true or false",
    "float_type": "a number or null",
    "finite_number": "a finite number or null",
    "list_type": "an array",
    "dict_type": "an object",
    "model_type": "an object",
    "string_too_long": "at most 128 characters",
    "string_too_short": "at least one character",
    "string_type": "a string",
    "string_pattern_mismatch": "a date such as 2018-12-31",
    "literal_error": "price or log_return",
    "string_unicode": "a string in UTF-8",
}


def _first_error(error: ValidationError) -> RequestError:
    # both branches of a union report errors: the one that got further is the one that the client meant
    deepest = max(error.errors(include_url=False), key=lambda detail: len(detail["loc"]))
    if deepest["type"] == "json_invalid":
        return RequestError(400, f"body: expected JSON; got {deepest['msg'].removeprefix('Invalid JSON: ')}")
    field = field_path(deepest["loc"])
    if deepest["type"] == "missing":
        return RequestError(422, f"{field}: required field is missing", field)
    expected = EXPECTED.get(deepest["type"], deepest["msg"])
    if deepest["loc"][:2] == ("parameters", "levels"):
        expected = expected.removesuffix(" or null")
    if deepest["loc"][2:3] == ("prices",) and len(deepest["loc"]) <= 4:
        expected = "an array of rows, or an object of prices by symbol"
    return invalid_field(field or "body", expected, deepest["input"])


def field_path(location: Sequence[Any]) -> str:
    """Path of a field in the request, without the union's branch that pydantic adds.

    >>> field_path(("instances", 3, "prices", "list[...]", 17, 0))
    'instances[3].prices[17][0]'
    """
    parts = [part for k, part in enumerate(location) if not (k == 3 and location[2] == "prices")]
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{str(part)[:60]}" for part in parts)
    return path.removeprefix(".")
