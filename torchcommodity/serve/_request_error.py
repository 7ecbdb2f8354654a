"""The one form in which the server says no."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi.responses import JSONResponse

AGAIN = {"Retry-After": "1"}
CLOSE = {"Connection": "close"}
SHOWN = 60  # characters of what was received that an error repeats


class RequestError(Exception):
    """A request that is answered with an error in words: operation or field, what was expected, what came.

    Args:
        status: of HTTP.
        message: for whoever sent the request.
        field: the place in the request, as `instances[3].prices[17][0]`; None = the request as a whole.
        headers: beside it, as `Retry-After`.
    """

    def __init__(
        self, status: int, message: str, field: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.field, self.headers = status, message, field, dict(headers or {})

    def response(self) -> JSONResponse:
        """As it is sent."""
        return JSONResponse(error(self.status, self.message, self.field), self.status, self.headers)


def expected(field: str, wanted: str, got: Any) -> RequestError:
    """A field that is not what it must be.

    >>> print(expected("instances[3].prices[17][0]", "a number or null", "x"))
    instances[3].prices[17][0]: expected a number or null; got "x"
    """
    return RequestError(422, f"{field}: expected {wanted}; got {shown(got)}", field)


def error(status: int, message: str, field: str | None = None) -> dict[str, Any]:
    """The document of every error, whatever its cause."""
    return {"error": {"code": status, "status": HTTPStatus(status).phrase, "message": message, "field": field}}


def shown(got: Any) -> str:
    """The beginning of a value as JSON, in plain ASCII.

    >>> shown("price of oil"), shown([1.0] * 99)[:6], shown([1.0] * 99)[-3:]
    ('"price of oil"', '[1.0, ', '...')
    """
    if isinstance(got, (list, dict)):
        got = got[:SHOWN] if isinstance(got, list) else dict(list(got.items())[:SHOWN])
    text = json.dumps(got[:SHOWN] if isinstance(got, str) else got, default=str)
    return text if len(text) <= SHOWN + 2 else f"{text[: SHOWN - 3].rstrip(', ')}..."
