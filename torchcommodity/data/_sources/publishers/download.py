"""One complete HTTP response, with timeouts and retries. Imported only for a request: `requests` imports slowly."""

import time
from collections.abc import Mapping

import requests
from requests.adapters import HTTPAdapter
from urllib3.response import BaseHTTPResponse
from urllib3.util import Retry

from torchcommodity.data._core.errors import DataError
from torchcommodity.data._sources.publishers.http import Http, UnreachableError

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


class _CappedRetry(Retry):
    def get_retry_after(self, response: BaseHTTPResponse) -> float | None:
        seconds = super().get_retry_after(response)
        return None if seconds is None else min(seconds, MAX_PAUSE)


def _retry(http: Http) -> Retry:
    return _CappedRetry(
        total=http.retries,
        backoff_factor=http.backoff,
        backoff_max=MAX_PAUSE,
        status_forcelist=BUSY,
        allowed_methods=("GET",),
        raise_on_status=False,
    )


def _body(response: requests.Response, url: str, http: Http, max_bytes: int) -> bytes:
    end, chunks, size = time.monotonic() + http.deadline, [], 0
    for chunk in response.iter_content(2**16):
        chunks.append(chunk)
        size += len(chunk)
        if size > max_bytes:
            raise DataError(f"{url}: expected at most {max_bytes} bytes; got more")
        if time.monotonic() > end:
            raise UnreachableError(f"{url}: expected a complete response in {http.deadline:g} s; got {size} bytes")
    return b"".join(chunks)


def _check_status(response: requests.Response, body: bytes, url: str, secrets: tuple[str, ...]) -> bytes:
    status = response.status_code
    if status == 200:
        return body
    excerpt = " ".join(body[:300].decode("utf-8", "replace").split())
    for secret in secrets:
        excerpt = excerpt.replace(secret, "***")
    kind = UnreachableError if status in BUSY else DataError
    raise kind(f"{url}: expected status 200; got {status} {response.reason}: {excerpt[:160]}")


def _reason(error: requests.RequestException) -> str:
    """Class names only: the text of these errors repeats the address with its secrets."""
    cause = getattr(error.args[0], "reason", None) if error.args else None
    return type(error).__name__ + (f" ({type(cause).__name__})" if cause is not None else "")
