"""The body of a request, read within its limits."""

import asyncio
import contextlib

from fastapi import Request

from torchcommodity.serve._request_error import CLOSE, RequestError
from torchcommodity.serve.http._limits import Limits

LINGER = 2.0  # seconds that the rest of a body too large is thrown away: closed at once, its client would see no answer


async def read(request: Request, limits: Limits) -> bytes:
    """All of a JSON body.

    Raises:
        RequestError: 415 for another content type or a packed one, 413 for one too large, 408 for one too slow,
            400 for none.
    """
    _check_kind(request)
    if _declared(request) > limits.bytes:
        raise await _too_large(request, limits)
    try:
        body = await asyncio.wait_for(_gathered(request, limits.bytes), limits.seconds)
    except asyncio.TimeoutError:
        raise RequestError(408, f"body: expected all of it within {limits.seconds:g} s", None, CLOSE) from None
    if body is None:
        raise await _too_large(request, limits)
    if not body:
        raise RequestError(400, "body: expected JSON; got nothing")
    return bytes(body)


def _check_kind(request: Request) -> None:
    kind = request.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != "application/json":
        raise RequestError(415, f"expected Content-Type: application/json; got {kind[:60]!r}")
    if (packed := request.headers.get("content-encoding", "identity")).lower() != "identity":
        raise RequestError(415, f"expected a body without Content-Encoding; got {packed[:60]!r}")


def _declared(request: Request) -> int:
    declared = request.headers.get("content-length", "0")
    return int(declared[:19]) if declared.isdecimal() else 0


async def _gathered(request: Request, most: int) -> bytearray | None:
    body, more = bytearray(), True
    while more:
        chunk, more = await _next(request)
        body += chunk
        if len(body) > most:
            return None
    return body


async def _too_large(request: Request, limits: Limits) -> RequestError:
    if request.headers.get("expect") is None:  # who asks first has sent nothing yet
        with contextlib.suppress(asyncio.TimeoutError, RequestError):
            await asyncio.wait_for(_thrown_away(request), LINGER)
    return RequestError(413, f"body: expected at most {limits.bytes} bytes; got more", None, CLOSE)


async def _thrown_away(request: Request) -> None:
    while (await _next(request))[1]:
        pass


async def _next(request: Request) -> tuple[bytes, bool]:
    message = await request.receive()
    if message["type"] == "http.disconnect":
        raise RequestError(400, "body: the client left before it was sent")
    return message.get("body", b""), message.get("more_body", False)
