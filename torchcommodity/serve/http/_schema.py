"""JSON schema of predict requests and responses, by Vertex AI's contract for custom containers."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AllowInfNan, BaseModel, BeforeValidator, ConfigDict, Field, Strict, ValidationError

from torchcommodity.serve._request_error import RequestError, invalid_field


def _integral(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value  # JSON has one type of number


FAIL_FAST = Field(fail_fast=True)  # report the first error; pydantic would collect millions of them
Price = Annotated[float, Strict(), AllowInfNan(False)] | None
PriceSeries = Annotated[list[Price], FAIL_FAST]
PriceRows = Annotated[list[PriceSeries], FAIL_FAST]
PricesBySymbol = Annotated[dict[str, PriceSeries], FAIL_FAST]
Date = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", json_schema_extra={"format": "date"})]
SeriesName = Annotated[str, Field(min_length=1, max_length=128)]
Level = Annotated[float, Strict(), AllowInfNan(False)]
Horizon = Annotated[int, Strict(), BeforeValidator(_integral)]

# pydantic would collect one error per unknown field: let them pass, and have `validate` report the first
REQUEST_CONFIG = ConfigDict(extra="allow", strict=True, json_schema_extra={"additionalProperties": False})


class Instance(BaseModel):
    """Price history to forecast from, oldest row first."""

    model_config = REQUEST_CONFIG
    prices: Annotated[
        PriceRows | PricesBySymbol,
        Field(
            union_mode="left_to_right",
            description="Either T rows of N prices, in the order of the artifact's symbols, or an object that maps "
            "each symbol to its T prices. null is a missing price.",
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
        default=None, description="Horizons in rows ahead, out of the artifact's; all by default"
    )
    quantity: Literal["price", "log_return"] = Field(
        default="price", description="Quantiles of the price, or of the cumulative log-return"
    )


class PredictRequest(BaseModel):
    """Instances to forecast; the predictions come in the same order."""

    model_config = REQUEST_CONFIG
    instances: Annotated[list[Instance], FAIL_FAST] = Field(json_schema_extra={"minItems": 1})
    parameters: Parameters | None = None


class PriceFinding(BaseModel):
    """Doubtful prices; the forecast is made from them as they are."""

    kind: str = Field(description="Such as jump, decimal slip, swapped columns, frozen, gap, old prices")
    symbol: str | None = Field(description="Symbol concerned; null for a whole row")
    date: str | None = Field(description="Date of the (first) occurrence; null for a whole series")
    value: str = Field(description="The prices, and what they are compared with")
    count: int = Field(description="Number of occurrences")


class Prediction(BaseModel):
    """Forecast quantiles of one instance."""

    symbols: list[str]
    units: list[str] = Field(description="Price unit per symbol; empty if unknown")
    origins: list[str | None] = Field(description="Forecast origin per symbol: the date of its last positive price")
    last: list[float | None] = Field(description="Last positive price per symbol")
    horizons: list[int] = Field(description="Horizons in rows ahead")
    levels: list[float] = Field(description="Quantile levels")
    quantity: Literal["price", "log_return"]
    quantiles: list[list[list[float | None]]] = Field(
        description="Quantiles by horizon, symbol and level; null if there is no forecast"
    )
    notes: list[str] = Field(
        description="Symbols without a forecast, with the reason; symbols whose prices are all equal; all findings"
    )
    findings: list[PriceFinding] = Field(description="What is doubtful about the prices")


class ArtifactInfo(BaseModel):
    """Artifact that made the predictions."""

    sha256: str
    version: str = Field(description="Version of torchcommodity that wrote the artifact")
    model: str
    trained_through: str = Field(description="Last date of the training prices")


class PredictResponse(BaseModel):
    """Predictions in the order of the instances."""

    predictions: list[Prediction]
    metadata: ArtifactInfo


class ErrorDetail(BaseModel):
    """Cause of an error."""

    code: int = Field(description="HTTP status code")
    status: str = Field(description="HTTP status phrase")
    message: str
    field: str | None = Field(description="Invalid field of the request, such as instances[3].prices[17][0]")


class ErrorResponse(BaseModel):
    """Error response of any route."""

    error: ErrorDetail


def validate(body: bytes) -> dict[str, Any]:
    """Validate the JSON body of a predict request, field by field; its content.

    Raises:
        RequestError: 400 for invalid JSON, 422 with the first field that does not match the schema.
    """
    try:
        request = PredictRequest.model_validate_json(body)
    except ValidationError as error:
        raise _first_error(error) from None
    _reject_unknown_fields(request, "")
    for i, instance in enumerate(request.instances):
        _reject_unknown_fields(instance, f"instances[{i}]")
    if request.parameters is not None:
        _reject_unknown_fields(request.parameters, "parameters")
    return request.model_dump()


def _reject_unknown_fields(model: BaseModel, parent: str) -> None:
    for name in model.model_extra or ():
        fields = ", ".join(type(model).model_fields)
        field = f"{parent}.{name[:60]}".removeprefix(".")
        raise RequestError(422, f"{field}: unknown field; expected only {fields}", field)


EXPECTED = {  # by pydantic's type of error
    "bool_type": "true or false",
    "float_type": "a number or null",
    "int_type": "an integer",
    "int_from_float": "an integer",
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
