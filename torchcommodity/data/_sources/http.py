"""Requests to publishers: settings, a cache on disk, retries; every response states when it was retrieved."""

import hashlib
import json
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlencode

from torchcommodity._extras import extra
from torchcommodity.data._core.errors import DataError
from torchcommodity.data._core.provenance import utc_now
from torchcommodity.data._sources.files import cache_dir, write_atomic

if TYPE_CHECKING:
    import requests
    from urllib3.util import Retry


@dataclass(frozen=True)
class Http:
    """Settings of requests to publishers.

    Args:
        cache: folder of cached responses; default: `cache_dir()`.
        max_age: seconds for which a cached response is used without a request; 0 = always request.
        timeout: seconds to connect, and between two chunks of a response.
        deadline: seconds for one complete response.
        retries: retries after a lost connection, status 429 or 5xx, or an incomplete response.
        backoff: seconds before the second retry, doubled each time.

    >>> Http(max_age=0).retries
    4
    """

    cache: Path | None = None
    max_age: float = 12 * 3600.0
    timeout: tuple[float, float] = (5.0, 30.0)
    deadline: float = 120.0
    retries: int = 4
    backoff: float = 0.5


class UnreachableError(DataError):
    """The publisher did not respond; a cached response may be used instead."""


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
    head = {"address": response.address, "retrieved": response.retrieved, "sha256": response.sha256}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, json.dumps(head).encode() + b"\n" + response.body)
    except OSError as error:
        warnings.warn(f"{path.parent}: the response was not cached: {error.strerror or error}", stacklevel=2)
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


BUSY = (429, 500, 502, 503, 504)
MAX_BYTES = 2**26  # of one response of a publisher
MAX_PAUSE = 30.0  # seconds, even if Retry-After asks for more


def download(
    address: str, query: Mapping[str, str], url: str, http: Http, secrets: tuple[str, ...], max_bytes: int = MAX_BYTES
) -> bytes:
    """The body of the response to a GET request; messages show `url`, and no `secrets`.

    Raises:
        UnreachableError: no complete response after all retries.
        DataError: an error status, or a body above `max_bytes`.
    """
    with extra("forecast"):
        import requests  # slow to import
        from requests.adapters import HTTPAdapter

    with requests.Session() as session:
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(max_retries=_retry(http)))
        for attempt in range(http.retries + 1):
            try:
                response = session.get(address, params=query, timeout=http.timeout, stream=True)
            except requests.RequestException as error:  # after the adapter's own retries
                raise UnreachableError(f"{url}: expected a response; got {_reason(error)}") from None
            with response:
                try:
                    return _check_status(response, _body(response, url, http, max_bytes), url, secrets)
                except requests.RequestException as error:  # an incomplete response is requested again
                    reason = _reason(error)
            time.sleep(min(http.backoff * 2**attempt, MAX_PAUSE) if attempt < http.retries else 0)
    attempts = f"{http.retries + 1} incomplete ones ({reason})"
    raise UnreachableError(f"{url}: expected a complete response; got {attempts}")


def _retry(http: Http) -> "Retry":
    with extra("forecast"):
        from urllib3.response import BaseHTTPResponse
        from urllib3.util import Retry

    class CappedRetry(Retry):
        def get_retry_after(self, response: BaseHTTPResponse) -> float | None:
            seconds = super().get_retry_after(response)
            return None if seconds is None else min(seconds, MAX_PAUSE)

    return CappedRetry(
        total=http.retries,
        backoff_factor=http.backoff,
        backoff_max=MAX_PAUSE,
        status_forcelist=BUSY,
        allowed_methods=("GET",),
        raise_on_status=False,
    )


def _body(response: "requests.Response", url: str, http: Http, max_bytes: int) -> bytes:
    end, chunks, size = time.monotonic() + http.deadline, [], 0
    for chunk in response.iter_content(2**16):
        chunks.append(chunk)
        size += len(chunk)
        if size > max_bytes:
            raise DataError(f"{url}: expected at most {max_bytes} bytes; got more")
        if time.monotonic() > end:
            raise UnreachableError(f"{url}: expected a complete response in {http.deadline:g} s; got {size} bytes")
    return b"".join(chunks)


def _check_status(response: "requests.Response", body: bytes, url: str, secrets: tuple[str, ...]) -> bytes:
    status = response.status_code
    if status == 200:
        return body
    excerpt = " ".join(body[:300].decode("utf-8", "replace").split())
    for secret in secrets:
        excerpt = excerpt.replace(secret, "***")
    kind = UnreachableError if status in BUSY else DataError
    raise kind(f"{url}: expected status 200; got {status} {response.reason}: {excerpt[:160]}")


def _reason(error: "requests.RequestException") -> str:
    """Class names only: the text of these errors repeats the address with its secrets."""
    cause = getattr(error.args[0], "reason", None) if error.args else None
    return type(error).__name__ + (f" ({type(cause).__name__})" if cause is not None else "")
