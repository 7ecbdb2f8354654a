"""Body of a predict request, parsed in one pass.

msgspec parses valid bodies. Only a body that it refuses goes through the slower validator of `_schema.py`, which names
the first invalid field.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from torchcommodity.serve.http._schema import validate

Prices = list[float | None]


class Instance(Struct, forbid_unknown_fields=True):
    """Price history to forecast from; see `_schema.Instance`."""

    prices: list[Prices] | dict[str, Prices]
    dates: list[str]
    series: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    append: bool = False


class Parameters(Struct, forbid_unknown_fields=True):
    """Outputs to return; see `_schema.Parameters`."""

    levels: list[float] | None = None
    horizons: list[int] | None = None
    quantity: Literal["price", "log_return"] = "price"


class ForecastRequest(Struct, forbid_unknown_fields=True):
    """Instances to forecast, and the outputs to return."""

    instances: list[Instance]
    parameters: Parameters | None = None


_DECODER = msgspec.json.Decoder(ForecastRequest)


def parse_request(body: bytes) -> ForecastRequest:
    """Parse the JSON body of a predict request.

    Raises:
        RequestError: 400 for invalid JSON, 422 with the first field that does not match the schema.
    """
    try:
        return _DECODER.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # a few valid bodies come here too, such as one with `"horizons": [5.0]`
        return msgspec.convert(validate(body), ForecastRequest)
