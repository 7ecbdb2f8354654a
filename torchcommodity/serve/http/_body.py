"""Request bodies, read within the limits of the server."""

import asyncio
import contextlib

from fastapi import Request

from torchcommodity.serve._request_error import CLOSE_CONNECTION, RequestError
from torchcommodity.serve.http._limits import Limits

DISCARD_SECONDS = 2.0  # time to discard an oversized body: a client that is still sending would miss the response


async def read_body(request: Request, limits: Limits) -> bytes:
    """Body of a JSON request.

    Raises:
        RequestError: 415 for another content type or a compressed body, 413 for an oversized, 408 for a slow and 400
            for an empty body.
    """
    _check_content_type(request)
    if _content_length(request) > limits.max_bytes:
        raise await _too_large(request, limits)
    try:
        body = await asyncio.wait_for(_read_chunks(request, limits.max_bytes), limits.timeout)
    except asyncio.TimeoutError:
        message = f"body: not received within {limits.timeout:g} s"
        raise RequestError(408, message, None, CLOSE_CONNECTION) from None
    if body is None:
        raise await _too_large(request, limits)
    if not body:
        raise RequestError(400, "body: expected JSON; got an empty body")
    return bytes(body)


def _check_content_type(request: Request) -> None:
    content_type = request.headers.get("content-type", "")
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise RequestError(415, f"Content-Type: expected application/json; got {content_type[:60]!r}")
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        raise RequestError(415, f"Content-Encoding: expected none; got {encoding[:60]!r}")


def _content_length(request: Request) -> int:
    length = request.headers.get("content-length", "0")
    return int(length[:19]) if length.isdecimal() else 0


async def _read_chunks(request: Request, max_bytes: int) -> bytearray | None:
    body, more = bytearray(), True
    while more:
        chunk, more = await _next_chunk(request)
        body += chunk
        if len(body) > max_bytes:
            return None
    return body


async def _too_large(request: Request, limits: Limits) -> RequestError:
    if request.headers.get("expect") is None:  # with Expect: 100-continue the client has not sent the body yet
        with contextlib.suppress(asyncio.TimeoutError, RequestError):
            await asyncio.wait_for(_discard(request), DISCARD_SECONDS)
    return RequestError(413, f"body: expected at most {limits.max_bytes} bytes; got more", None, CLOSE_CONNECTION)


async def _discard(request: Request) -> None:
    while (await _next_chunk(request))[1]:
        pass


async def _next_chunk(request: Request) -> tuple[bytes, bool]:
    message = await request.receive()
    if message["type"] == "http.disconnect":
        raise RequestError(400, "body: the client disconnected before the end")
    return message.get("body", b""), message.get("more_body", False)
