"""Settings of requests to publishers."""

from dataclasses import dataclass
from pathlib import Path

from torchcommodity.data._core.errors import DataError


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
