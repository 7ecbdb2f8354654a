"""Errors of the server, all in one JSON form."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi.responses import JSONResponse

RETRY_AFTER = {"Retry-After": "1"}
CLOSE_CONNECTION = {"Connection": "close"}
CAUSES = {  # of a failed prediction, by status; a 503 can have others too
    400: "malformed",
    408: "slow_body",
    413: "too_large",
    415: "content_type",
    422: "invalid",
    500: "internal",
    503: "busy",
    504: "timeout",
}
MAX_SHOWN = 60  # characters of a received value that a message repeats


class RequestError(Exception):
    """Error response to a request.

    Args:
        status: HTTP status code.
        message: text for the client: what is expected and what was received.
        field: place in the request, such as `instances[3].prices[17][0]`; None = the request as a whole.
        headers: additional response headers, such as `Retry-After`.
        cause: label of the metric of failed predictions; None = by status.
    """

    def __init__(
        self,
        status: int,
        message: str,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        cause: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.field, self.headers = status, message, field, dict(headers or {})
        self.cause = cause or CAUSES.get(status, "other")

    def response(self) -> JSONResponse:
        """HTTP response of this error."""
        return JSONResponse(error_document(self.status, self.message, self.field), self.status, self.headers)


def invalid_field(field: str, expected: str, received: Any) -> RequestError:
    """422 error of a field with an invalid value.

    >>> print(invalid_field("instances[3].prices[17][0]", "a number or null", "x"))
    instances[3].prices[17][0]: expected a number or null; got "x"
    """
    return RequestError(422, f"{field}: expected {expected}; got {abbreviate(received)}", field)


def error_document(status: int, message: str, field: str | None = None) -> dict[str, Any]:
    """JSON document of an error."""
    return {"error": {"code": status, "status": HTTPStatus(status).phrase, "message": message, "field": field}}


def abbreviate(value: Any) -> str:
    """Start of a value as ASCII JSON.

    >>> abbreviate("price of oil"), abbreviate([1.0] * 99)[:6], abbreviate([1.0] * 99)[-3:]
    ('"price of oil"', '[1.0, ', '...')
    """
    if isinstance(value, (list, dict)):
        value = value[:MAX_SHOWN] if isinstance(value, list) else dict(list(value.items())[:MAX_SHOWN])
    text = json.dumps(value[:MAX_SHOWN] if isinstance(value, str) else value, default=str)
    return text if len(text) <= MAX_SHOWN + 2 else f"{text[: MAX_SHOWN - 3].rstrip(', ')}..."
