"""Where sources are: files of web servers, with retries and a cache; objects of S3, Google Cloud Storage and Azure."""

import hashlib
import json
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode, urlsplit

from torchcommodity._extras import extra
from torchcommodity.data._core.errors import DataError
from torchcommodity.data._core.provenance import utc_now
from torchcommodity.data._sources.files import cache_dir, write_atomic

if TYPE_CHECKING:
    import requests
    from urllib3.util import Retry

T = TypeVar("T")
BUSY = (429, 500, 502, 503, 504)
MAX_BYTES = 2**26  # of one response of a publisher
MAX_PAUSE = 30.0  # seconds, even if Retry-After asks for more
SECRET = re.compile("SECRET|TOKEN|PASSWORD|ACCESS_KEY", re.IGNORECASE)
MAX_TEXT = 300  # characters
STORES = {"s3": "torchcommodity[cloud]", "gs": "torchcommodity[cloud]", "az": "adlfs"}  # scheme: what to install
WEB = ("http", "https")
DEADLINE, MAX_WEB_BYTES = 600.0, 2**30  # seconds for, and bytes of, one file of a web server
HINTS = {
    "FileNotFoundError": "no such bucket or object",
    "PermissionError": "no permission; check the credentials and the policy of the bucket",
    "NoCredentialsError": "no credentials; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
}


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


def first_line(error: Exception) -> str:
    """The first line of an error's text, or the name of its class; values of secret variables are shown as `***`.

    >>> os.environ["MY_TOKEN"] = "abcd1234"
    >>> first_line(ValueError("abcd1234 has expired\\nat 12:00"))
    '*** has expired'
    """
    text = str(error).strip().partition("\n")[0] or type(error).__name__
    for name, value in os.environ.items():
        if SECRET.search(name) and len(value) > 3:
            text = text.replace(value, "***")
    return text[:MAX_TEXT]


def is_remote(source: str) -> bool:
    """Whether a source is the address of an object or of a file on a web server.

    >>> is_remote("s3://bucket/prices.parquet"), is_remote("prices.parquet"), is_remote("fred:WTI")
    (True, False, False)
    """
    return source.partition("://")[0] in (*STORES, *WEB) and "://" in source


def public_address(address: str) -> str:
    """The address without user, password, query and fragment, which can hold credentials.

    >>> public_address("https://user:secret@prices.org/wti.csv?X-Amz-Signature=abc")
    'https://prices.org/wti.csv'
    """
    scheme, _, rest = address.partition("://")
    if scheme in WEB:
        rest = urlsplit(address)._replace(scheme="", query="", fragment="").geturl().removeprefix("//")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def write_object(address: str, content: bytes) -> None:
    """Write an object, whole or not at all: one request, or an upload in parts that is completed at the end.

    Raises:
        DataError: no such bucket, no permission, no answer; an object of this name is unchanged.
        ImportError: the extra `cloud` is not installed.
    """
    if address.startswith(WEB):
        raise DataError(f"{public_address(address)}: expected s3://, gs:// or a path to write to; got a web address")
    files, path = _open_store(address)
    with _readable_errors(address, "an object that can be written"):
        files.pipe_file(path, content)


def list_objects(address: str) -> list[str]:
    """The Parquet objects below an address that ends in a slash, or that match one with `*`; none for any other.

    Raises:
        DataError: no such object, no permission, no answer.
        ImportError: the extra `cloud` is not installed.
    """
    scheme = address.partition("://")[0]
    if scheme in WEB or not (address.endswith("/") or "*" in address):
        return []
    files, path = _open_store(address)
    with _readable_errors(address, "Parquet objects"):
        names = files.glob(path) if "*" in path else files.find(path)
        if names := sorted(name for name in names if name.endswith(".parquet")):
            return [f"{scheme}://{name}" for name in names]
        raise FileNotFoundError


@contextmanager
def local_copy(source: str | os.PathLike[str], *, max_bytes: int | None = None) -> Iterator[Path]:
    """The path of a source: a local one as it is, objects as a temporary copy that is removed at the end.

    An address that ends in a slash, or a pattern with `*`, is a folder with the Parquet objects below it.

    Args:
        source: a path, or an address such as `s3://BUCKET/NAME` or `https://HOST/NAME`.
        max_bytes: reject larger objects; None = no limit, except 1 GiB from a web server.

    Raises:
        DataError: there is no such object, no permission, no answer, or more than `max_bytes`.
        ImportError: the extra `cloud` is not installed.

    >>> with local_copy("panels.parquet") as path:  # or "s3://lake/panels.parquet"
    ...     path.name
    'panels.parquet'
    """
    name = os.fspath(source)
    if not is_remote(name):
        yield Path(name)
        return
    with TemporaryDirectory(prefix="torchcommodity-") as folder:
        if objects := list_objects(name):
            shared = os.path.commonpath([os.path.dirname(address) for address in objects])
            for address in objects:
                _fetch(address, Path(folder) / os.path.relpath(address, shared), max_bytes)
            yield Path(folder)
        else:
            path = Path(folder) / (Path(urlsplit(public_address(name)).path).name or "object")
            _fetch(name, path, max_bytes)
            yield path


def _fetch(address: str, path: Path, max_bytes: int | None) -> None:
    """Copy one object to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if address.startswith(WEB):
        parts = urlsplit(address).query.split("&")
        secrets = tuple(filter(None, (value.partition("=")[2] for value in parts)))
        http = Http(deadline=DEADLINE)
        path.write_bytes(download(address, {}, public_address(address), http, secrets, max_bytes or MAX_WEB_BYTES))
        return
    files, name = _open_store(address)
    with _readable_errors(address, "an object that can be read"):
        size = files.info(name)["size"]
        if max_bytes is not None and size > max_bytes:
            raise DataError(f"{public_address(address)}: expected at most {max_bytes} bytes; got {size}")
        files.get_file(name, str(path))


def _open_store(address: str) -> tuple[Any, str]:
    """The file system of an address, with the credentials of the environment, and the path in it."""
    scheme, _, path = address.partition("://")
    bucket, _, key = path.partition("/")
    if not bucket or not key or "@" in bucket or any(not character.isprintable() for character in path):
        raise DataError(f"{public_address(address)}: expected {scheme}://BUCKET/NAME; got another form")
    try:
        import fsspec

        files = fsspec.filesystem(scheme, use_listings_cache=False)
    except ImportError as error:
        raise ImportError(f"{scheme}:// needs an extra package: pip install '{STORES[scheme]}'") from error
    return files, path


@contextmanager
def _readable_errors(address: str, expected: str) -> Iterator[None]:
    """Turn the errors of the storage libraries, which have no common class, into a `DataError` without secrets."""
    try:
        yield
    except (DataError, ImportError):
        raise
    except Exception as error:
        hints = [HINTS[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in HINTS]
        reason = hints[0] if hints else f"{type(error).__name__}: {first_line(error)}"
        raise DataError(f"{public_address(address)}: expected {expected}; got {reason}") from None
