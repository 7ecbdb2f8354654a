"""Request bodies, read within the limits of the server."""

import contextlib
import zlib

from fastapi import Request

from torchcommodity.serve._request_error import CLOSE_CONNECTION, RequestError
from torchcommodity.serve.http._uploads import Upload, Uploads

DISCARD_SECONDS = 2.0  # time to discard an oversized body: a client that is still sending would miss the response
GZIP = zlib.MAX_WBITS + 16  # a gzip member, with its checksum
ENCODINGS = {"Accept-Encoding": "gzip"}  # of a 415, by RFC 9110


async def read_body(request: Request, uploads: Uploads) -> bytes:
    """Body of a JSON request, decompressed.

    Raises:
        RequestError: 415 for another content type or encoding, 413 for a body that is too large, before or after
            decompression, 408 for a slow one, 400 for an empty or damaged one, 503 if the server receives too many.
    """
    max_bytes = uploads.limits.max_bytes
    content_type = request.headers.get("content-type", "")
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise RequestError(415, f"Content-Type: expected application/json; got {content_type[:60]!r}")
    encoding = ", ".join(request.headers.getlist("content-encoding")).strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        raise RequestError(415, f"Content-Encoding: expected gzip or none; got {encoding[:60]!r}", None, ENCODINGS)
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length[:19]) > max_bytes:
        raise await _too_large(request, uploads)
    upload = Upload(uploads.limits.timeout)

    async def receive() -> None:
        more = True
        while more and upload.size <= max_bytes:
            chunk, more = await _next_chunk(request)
            upload.body += chunk
            upload.size += len(chunk)
            uploads.make_room()

    await uploads.run(upload, receive())
    if upload.size > max_bytes:
        upload.body.clear()  # no longer counted in the memory of uploads while the rest is discarded
        raise await _too_large(request, uploads)
    body = bytes(upload.body)
    if encoding.endswith("gzip"):
        body = _decompress(body, max_bytes)
    if not body:
        raise RequestError(400, "body: expected JSON; got an empty body")
    return body


def _decompress(body: bytes, max_bytes: int) -> bytes:
    """Decompress a gzip member, no further than a byte over the limit: few bytes can expand to gigabytes."""
    member = zlib.decompressobj(GZIP)
    try:
        content = member.decompress(body, max_bytes + 1)
    except zlib.error:
        raise RequestError(400, "body: expected gzip, as in Content-Encoding; got damaged or other data") from None
    if len(content) > max_bytes:
        raise RequestError(413, f"body: expected at most {max_bytes} bytes after decompression; got more")
    if not member.eof or member.unused_data:
        got = "data after its end" if member.eof else "a truncated body"
        raise RequestError(400, f"body: expected one complete gzip member; got {got}")
    return content


async def _too_large(request: Request, uploads: Uploads) -> RequestError:
    if request.headers.get("expect") is None:  # with Expect: 100-continue the client has not sent the body yet
        upload = Upload(DISCARD_SECONDS)

        async def discard() -> None:
            more = True
            while more:
                chunk, more = await _next_chunk(request)
                upload.size += len(chunk)

        with contextlib.suppress(RequestError):
            await uploads.run(upload, discard())
    message = f"body: expected at most {uploads.limits.max_bytes} bytes; got more"
    return RequestError(413, message, None, CLOSE_CONNECTION)


async def _next_chunk(request: Request) -> tuple[bytes, bool]:
    message = await request.receive()
    if message["type"] == "http.disconnect":
        raise RequestError(400, "body: the client disconnected before the end")
    return message.get("body", b""), message.get("more_body", False)
