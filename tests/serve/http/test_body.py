"""Request bodies: slow, too many, too large and compressed ones."""

import asyncio
import gzip
from collections.abc import Awaitable

import pytest
from fastapi import Request

from torchcommodity.serve._request_error import RequestError
from torchcommodity.serve.http import Limits, _uploads
from torchcommodity.serve.http._body import read_body
from torchcommodity.serve.http._uploads import Upload, Uploads

LIMITS = Limits(max_bytes=1000)
NEVER = 3600.0


def request(*chunks: bytes, end: bool = True, **headers: str) -> Request:
    """Request with a body in chunks, of which the last one is sent never if not `end`."""
    messages = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]

    async def receive() -> dict[str, object]:
        if messages:
            return messages.pop(0)
        if not end:
            await asyncio.sleep(NEVER)
        return {"type": "http.request", "body": b"", "more_body": False}

    fields = {"content-type": "application/json"} | {name.replace("_", "-"): text for name, text in headers.items()}
    raw = [(name.encode(), text.encode()) for name, text in fields.items()]
    return Request({"type": "http", "method": "POST", "path": "/", "headers": raw}, receive)


def status(reading: Awaitable[bytes]) -> int:
    async def run() -> bytes:
        return await reading

    with pytest.raises(RequestError) as error:
        asyncio.run(run())
    return error.value.status


def test_body_is_read_in_pieces() -> None:
    assert asyncio.run(read_body(request(b"[1", b", 2]"), Uploads(LIMITS))) == b"[1, 2]"


def test_slow_body_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_uploads, "GRACE_SECONDS", 0.05)
    assert status(read_body(request(b"[", end=False), Uploads(LIMITS))) == 408


def test_upload_deadline_grows_with_received_bytes_up_to_the_timeout() -> None:
    sizes = (0, 40960, 10**6)
    assert [Upload(20.0, size=size, start=100.0).deadline for size in sizes] == [105.0, 115.0, 120.0]


@pytest.mark.parametrize(("limit", "value"), [("MAX_UPLOADS", 2), ("MAX_FULL_UPLOADS", 2)])
def test_oldest_upload_makes_room(limit: str, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_uploads, limit, value)
    uploads = Uploads(LIMITS)

    async def run() -> list[object]:
        first, second = (asyncio.ensure_future(read_body(request(b" " * 900, end=False), uploads)) for _ in range(2))
        await asyncio.sleep(0.01)
        third = await read_body(request(b" " * 900), uploads)
        await asyncio.wait({first}, timeout=10)
        second.cancel()
        return [first.exception(), second.done(), len(third)]

    error, *others = asyncio.run(run())
    assert isinstance(error, RequestError)
    assert [error.status, *others] == [503, False, 900]


def test_gzip_body_is_decompressed_up_to_the_limit() -> None:
    def read(body: bytes, encoding: str = "gzip") -> Awaitable[bytes]:
        return read_body(request(body, content_encoding=encoding), Uploads(LIMITS))

    async def run() -> bytes:
        return await read(gzip.compress(b" " * 1000))

    assert asyncio.run(run()) == b" " * 1000
    bomb = gzip.compress(b" " * 900_000)
    assert len(bomb) < 1000
    assert status(read(bomb)) == 413
    for damaged in (b"{}", gzip.compress(b"{}")[:-1], gzip.compress(b"{}") + b"{}", gzip.compress(b"{}") * 2):
        assert status(read(damaged)) == 400
    for encoding in ("deflate", "br", "gzip, gzip"):
        assert status(read(b"{}", encoding)) == 415
