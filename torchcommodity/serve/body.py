"""The body of a request, read within its limits."""

import asyncio
import time

from fastapi import Request
from starlette.requests import ClientDisconnect

from torchcommodity.serve.limits import Limits
from torchcommodity.serve.request_error import RequestError

LINGER = 2.0  # seconds that the rest of a body too large is thrown away: closed at once, its client would see no answer
CLOSE = {"Connection": "close"}


async def read(request: Request, limits: Limits) -> bytes:
    """All of a JSON body.

    Raises:
        RequestError: 415 for another content type or a packed one, 413 for one too large, 408 for one too slow,
            400 for none.
    """
    _check_kind(request)
    declared = request.headers.get("content-length", "")
    fits = not declared.isdecimal() or (len(declared) < 19 and int(declared) <= limits.bytes)
    try:
        body = await asyncio.wait_for(_gathered(request, limits.bytes if fits else 0), limits.seconds)
    except asyncio.TimeoutError:
        raise RequestError(408, f"body: expected all of it within {limits.seconds:g} s", None, CLOSE) from None
    except ClientDisconnect:
        raise RequestError(400, "body: the client left before it was sent") from None
    if body is None:
        raise RequestError(413, f"body: expected at most {limits.bytes} bytes; got more", None, CLOSE)
    if not body:
        raise RequestError(400, "body: expected JSON; got nothing")
    return bytes(body)


def _check_kind(request: Request) -> None:
    kind = request.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != "application/json":
        raise RequestError(415, f"expected Content-Type: application/json; got {kind[:60]!r}")
    if (packed := request.headers.get("content-encoding", "identity")).lower() != "identity":
        raise RequestError(415, f"expected a body without Content-Encoding; got {packed[:60]!r}")


async def _gathered(request: Request, most: int) -> bytearray | None:
    body, beyond = bytearray(), 0.0
    async for chunk in request.stream():
        if not beyond and len(body) + len(chunk) <= most:
            body += chunk
            continue
        beyond = beyond or time.monotonic()
        if time.monotonic() - beyond > LINGER:
            break
    return None if beyond else body
