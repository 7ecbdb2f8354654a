"""One GET with time-outs, retries and a cache on disk whose age is stated; nothing half-received is ever used."""

import hashlib
import json
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from torchcommodity.data._atomic_write import write_atomic
from torchcommodity.data._errors import DataError
from torchcommodity.data._folders import cache_dir
from torchcommodity.data._panel import utc_now

T = TypeVar("T")

BUSY = (429, 500, 502, 503, 504)
LARGEST = 2**26  # bytes of one answer
LONGEST_PAUSE = 30.0  # seconds, whatever Retry-After asks for


@dataclass(frozen=True)
class Http:
    """How publishers are asked.

    Args:
        cache: folder of kept answers; default: `cache_dir()`.
        max_age: seconds for which a kept answer is used without asking again; 0 asks always.
        timeout: seconds to connect, and between two pieces of an answer.
        deadline: seconds for one whole answer.
        retries: times to try again after a lost connection, 429 or 5xx, or an answer cut short.
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


@dataclass(frozen=True)
class Reply:
    """An answer as received: bytes, the address without secrets, and when. `old` marks a copy past its age."""

    body: bytes
    address: str
    retrieved: str
    sha256: str
    old: bool = False


class UnreachableError(DataError):
    """The publisher gave no answer; a kept one may stand in."""


class _Patient(Retry):
    def get_retry_after(self, response: Any) -> float | None:
        asked = super().get_retry_after(response)
        return None if asked is None else min(asked, LONGEST_PAUSE)


def get(
    address: str,
    query: Mapping[str, str],
    parse: Callable[[Reply], T],
    *,
    http: Http,
    secret: Mapping[str, str] | None = None,
) -> tuple[Reply, T]:
    """The answer to `address?query` and what `parse` makes of it; kept on disk only after `parse` accepted it.

    `secret` is sent with the query, and appears in no file, record or message. When the publisher does not answer, a
    kept copy of any age is returned with `old=True`; without one, and for every refusal (404, 403 ...), a `DataError`.
    """
    shown = f"{address}?{urlencode(query)}" if query else address
    path = (http.cache or cache_dir()) / f"{hashlib.sha256(shown.encode()).hexdigest()}.reply"
    kept = _kept(path, shown)
    if kept is not None and _age(kept) <= http.max_age:
        return kept, parse(kept)
    try:
        body = _download(address, {**query, **(secret or {})}, shown, http, tuple((secret or {}).values()))
    except UnreachableError:
        if kept is None:
            raise
        kept = replace(kept, old=True)
        return kept, parse(kept)
    reply = Reply(body, shown, utc_now(), hashlib.sha256(body).hexdigest())
    parsed = parse(reply)
    _keep(path, reply)
    return reply, parsed


def _download(address: str, query: Mapping[str, str], shown: str, http: Http, secrets: tuple[str, ...]) -> bytes:
    with requests.Session() as session:
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(max_retries=_retry(http)))
        for attempt in range(http.retries + 1):
            try:
                response = session.get(address, params=query, timeout=http.timeout, stream=True)
            except requests.RequestException as error:  # after the adapter's own retries
                raise UnreachableError(f"{shown}: expected an answer; got {_reason(error)}") from None
            with response:
                try:
                    return _accepted(response, _body(response, shown, http), shown, secrets)
                except requests.RequestException as error:  # an answer cut short is asked for again
                    failure = _reason(error)
            time.sleep(min(http.backoff * 2**attempt, LONGEST_PAUSE) if attempt < http.retries else 0)
    raise UnreachableError(f"{shown}: expected a whole answer; got one cut short {http.retries + 1} times ({failure})")


def _retry(http: Http) -> Retry:
    return _Patient(
        total=http.retries,
        backoff_factor=http.backoff,
        backoff_max=LONGEST_PAUSE,
        status_forcelist=BUSY,
        allowed_methods=("GET",),
        raise_on_status=False,
    )


def _body(response: requests.Response, shown: str, http: Http) -> bytes:
    until, pieces, size = time.monotonic() + http.deadline, [], 0
    for piece in response.iter_content(2**16):
        pieces.append(piece)
        size += len(piece)
        if size > LARGEST:
            raise DataError(f"{shown}: expected at most {LARGEST} bytes; got more")
        if time.monotonic() > until:
            raise UnreachableError(f"{shown}: expected a whole answer in {http.deadline:g} s; got {size} bytes")
    return b"".join(pieces)


def _accepted(response: requests.Response, body: bytes, shown: str, secrets: tuple[str, ...]) -> bytes:
    status = response.status_code
    if status == 200:
        return body
    said = " ".join(body[:300].decode("utf-8", "replace").split())
    for word in secrets:
        said = said.replace(word, "***")
    kind = UnreachableError if status in BUSY else DataError
    raise kind(f"{shown}: expected status 200; got {status} {response.reason}: {said[:160]}")


def _reason(error: requests.RequestException) -> str:
    """Class names only: the text of these errors repeats the address with its secrets."""
    cause = getattr(error.args[0], "reason", None) if error.args else None
    return type(error).__name__ + (f" ({type(cause).__name__})" if cause is not None else "")


def _kept(path: Path, shown: str) -> Reply | None:
    try:
        head, _, body = path.read_bytes().partition(b"\n")
        record = json.loads(head)
        reply = Reply(body, record["address"], record["retrieved"], record["sha256"])
        _age(reply)
    except (OSError, ValueError, KeyError, TypeError):
        return None  # absent or damaged: asked for again
    whole = hashlib.sha256(body).hexdigest() == reply.sha256 and reply.address == shown
    return reply if whole else None


def _age(reply: Reply) -> float:
    then = datetime.strptime(reply.retrieved, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
    age = (datetime.now(timezone.utc) - then).total_seconds()
    return age if age >= 0 else float("inf")  # a copy from the future has no age to trust


def _keep(path: Path, reply: Reply) -> None:
    head = json.dumps({"address": reply.address, "retrieved": reply.retrieved, "sha256": reply.sha256}).encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, head + b"\n" + reply.body)
    except OSError as error:
        warnings.warn(f"{path.parent}: the response was not cached: {error.strerror or error}", stacklevel=3)
