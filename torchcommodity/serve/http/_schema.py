"""What a request and its answer look like: Vertex AI's contract for custom containers."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AllowInfNan, BaseModel, ConfigDict, Field, Strict, ValidationError

from torchcommodity.serve._request_error import RequestError, expected

FAST = Field(fail_fast=True)  # the first error is told: a million of them would be gathered otherwise
Price = Annotated[float, Strict(), AllowInfNan(False)] | None
Series = Annotated[list[Price], FAST]
Rows = Annotated[list[Series], FAST]
BySymbol = Annotated[dict[str, Series], FAST]
Day = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", json_schema_extra={"format": "date"})]
Level = Annotated[float, Strict(), AllowInfNan(False)]
Horizon = Annotated[int, Strict()]

# unknown fields are let in and refused by `parsed`, which tells the first: pydantic would gather one error for each
CLOSED = ConfigDict(extra="allow", strict=True, json_schema_extra={"additionalProperties": False})


class Instance(BaseModel):
    """Prices and their days, oldest first."""

    model_config = CLOSED
    prices: Annotated[
        Rows | BySymbol,
        Field(
            union_mode="left_to_right",
            description="T rows of N prices in the order of the artifact's symbols, or an object of T prices by "
            "symbol, in any order. null = missing.",
        ),
    ]
    dates: Annotated[list[Day], FAST] = Field(description="T days that rise")


class Parameters(BaseModel):
    """What is asked of every instance."""

    model_config = CLOSED
    levels: Annotated[list[Level], FAST] | None = Field(default=None, description="of the artifact's; all by default")
    horizons: Annotated[list[Horizon], FAST] | None = Field(default=None, description="of the artifact's; rows ahead")
    quantity: Literal["price", "log_return"] = Field(default="price", description="of the quantiles")


class Request(BaseModel):
    """Any number of instances, answered in their order."""

    model_config = CLOSED
    instances: Annotated[list[Instance], FAST] = Field(json_schema_extra={"minItems": 1})
    parameters: Parameters | None = None


class Prediction(BaseModel):
    """Quantiles from the last row of an instance on."""

    symbols: list[str]
    units: list[str] = Field(description="of the prices; empty where the artifact states none")
    origins: list[str | None] = Field(description="the day of each symbol's last positive price, where it starts from")
    last: list[float | None] = Field(description="that price")
    horizons: list[int] = Field(description="rows ahead")
    levels: list[float] = Field(description="probabilities")
    quantity: Literal["price", "log_return"]
    quantiles: list[list[list[float | None]]] = Field(description="by horizon, symbol, level; null as `notes` says why")
    notes: list[str] = Field(description="why a symbol has no forecast yet")


class Artifact(BaseModel):
    """What answered."""

    sha256: str
    version: str = Field(description="of torchcommodity, which wrote it")
    model: str
    trained_through: str


class Answer(BaseModel):
    """Predictions in the order of the instances."""

    predictions: list[Prediction]
    metadata: Artifact


class Problem(BaseModel):
    """Why there is no answer."""

    code: int
    status: str
    message: str
    field: str | None = Field(description="the place in the request, as instances[3].prices[17][0]")


class Error(BaseModel):
    """Every error has this form."""

    error: Problem


def parsed(body: bytes) -> Request:
    """The request in a body.

    Raises:
        RequestError: 400 for what is no JSON, 422 for what has another form; the first place that is wrong is told.
    """
    try:
        request = Request.model_validate_json(body)
    except ValidationError as problem:
        raise _told(problem) from None
    _closed(request, "")
    for i, instance in enumerate(request.instances):
        _closed(instance, f"instances[{i}]")
    if request.parameters is not None:
        _closed(request.parameters, "parameters")
    return request


def _closed(model: BaseModel, place: str) -> None:
    for name in model.model_extra or ():
        known = ", ".join(type(model).model_fields)
        field = f"{place}.{name[:60]}".removeprefix(".")
        raise RequestError(422, f"{field}: expected no field but {known}; got this one", field)


WANTED = {
    "missing": "a field of this name",
    "float_type": "a number or null",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "finite_number": "a finite number or null",
    "list_type": "an array",
    "dict_type": "an object",
    "model_type": "an object",
    "string_type": "a text",
    "string_pattern_mismatch": "a date as 2018-12-31",
    "literal_error": "price or log_return",
    "string_unicode": "text in UTF-8",
}


def _told(problem: ValidationError) -> RequestError:
    # of a union both branches complain: whichever came farther is what was meant
    worst = max(problem.errors(include_url=False), key=lambda told: len(told["loc"]))
    if worst["type"] == "json_invalid":
        return RequestError(400, f"body: expected JSON; got {worst['msg'].removeprefix('Invalid JSON: ')}")
    field = path(worst["loc"])
    if worst["type"] == "missing":
        return RequestError(422, f"{field}: expected a field of this name; got none", field)
    wanted = WANTED.get(worst["type"], worst["msg"])
    if worst["loc"][2:3] == ("prices",) and len(worst["loc"]) <= 4:
        wanted = "an array of rows, or an object of prices by symbol"
    return expected(field or "body", wanted, worst["input"])


def path(place: Sequence[Any]) -> str:
    """The place of an error as one would write it; the name of a union's branch is left out.

    >>> path(("instances", 3, "prices", "list[...]", 17, 0))
    'instances[3].prices[17][0]'
    """
    parts = [part for k, part in enumerate(place) if not (k == 3 and place[2] == "prices")]
    joined = "".join(f"[{part}]" if isinstance(part, int) else f".{str(part)[:60]}" for part in parts)
    return joined.removeprefix(".")
