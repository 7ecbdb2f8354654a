"""GET requests with a cache on disk; every response states when it was retrieved."""

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlencode

from torchcommodity.data._core.provenance import utc_now
from torchcommodity.data._sources.atomic_write import write_atomic
from torchcommodity.data._sources.folders import cache_dir
from torchcommodity.data._sources.publishers.http import Http, UnreachableError

T = TypeVar("T")


@dataclass(frozen=True)
class Response:
    """A response: its bytes, address without secrets, and time of retrieval; `expired`: cached, older than max_age."""

    body: bytes
    address: str
    retrieved: str
    sha256: str
    expired: bool = False


def get(
    address: str,
    query: Mapping[str, str],
    parse: Callable[[Response], T],
    *,
    http: Http,
    secret: Mapping[str, str] | None = None,
) -> tuple[Response, T]:
    """Request `address?query`; return the response and the result of `parse`.

    A response is cached only if `parse` accepts it. `secret` is sent with the query, and never written to a file,
    record or message. If the publisher does not respond, a cached response of any age is returned with `expired=True`.

    Raises:
        DataError: no response and none cached, or an error response (404, 403 ...).
    """
    from torchcommodity.data._sources.publishers.download import download  # imports requests

    url = f"{address}?{urlencode(query)}" if query else address
    path = (http.cache or cache_dir()) / f"{hashlib.sha256(url.encode()).hexdigest()}.response"
    cached = _read_cache(path, url)
    if cached is not None and _age(cached) <= http.max_age:
        return cached, parse(cached)
    try:
        body = download(address, {**query, **(secret or {})}, url, http, tuple((secret or {}).values()))
    except UnreachableError:
        if cached is None:
            raise
        cached = replace(cached, expired=True)
        return cached, parse(cached)
    response = Response(body, url, utc_now(), hashlib.sha256(body).hexdigest())
    result = parse(response)
    _write_cache(path, response)
    return response, result


def _read_cache(path: Path, url: str) -> Response | None:
    try:
        head, _, body = path.read_bytes().partition(b"\n")
        record = json.loads(head)
        response = Response(body, record["address"], record["retrieved"], record["sha256"])
        _age(response)
    except (OSError, ValueError, KeyError, TypeError):
        return None  # absent or damaged: requested again
    intact = hashlib.sha256(body).hexdigest() == response.sha256 and response.address == url
    return response if intact else None


def _age(response: Response) -> float:
    retrieved = datetime.strptime(response.retrieved, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
    age = (datetime.now(timezone.utc) - retrieved).total_seconds()
    return age if age >= 0 else float("inf")  # a time in the future cannot be trusted


def _write_cache(path: Path, response: Response) -> None:
    head = {"address": response.address, "retrieved": response.retrieved, "sha256": response.sha256}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, json.dumps(head).encode() + b"\n" + response.body)
    except OSError as error:
        warnings.warn(f"{path.parent}: the response was not cached: {error.strerror or error}", stacklevel=3)
