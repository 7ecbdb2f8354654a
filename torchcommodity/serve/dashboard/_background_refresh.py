"""Background thread that makes the dashboard's document, at most once a minute and only on request."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

REFRESH_SECONDS = 60.0  # between two refreshes
RETRY_SECONDS = 2.0  # from a failed refresh to the next
FIRST_WAIT_SECONDS = 1.0  # that a request waits for the first document
WAIT_SECONDS = 0.05  # that a request waits for a newer document

log = logging.getLogger("torchcommodity.serve")


class Snapshot(NamedTuple):
    """State of the document.

    Args:
        document: the latest document, None before the first.
        error: message of the latest refresh if it failed, else "".
        refreshing: whether a refresh is running.
    """

    document: dict[str, Any] | None
    error: str
    refreshing: bool


@dataclass
class BackgroundRefresh:
    """Calls `make_document` in a thread when a document is requested and the latest one is old.

    Args:
        make_document: reads the prices and makes the document; slow. It is called again at once after a document whose
            `state` is `outlook`, which lacks the past forecasts.
        interval_seconds: minimum time between two refreshes.
    """

    make_document: Callable[[], dict[str, Any]]
    interval_seconds: float = REFRESH_SECONDS
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _document: dict[str, Any] | None = field(default=None, init=False)
    _error: str = field(default="", init=False)
    _due: float = field(default=0.0, init=False)

    def snapshot(self) -> Snapshot:
        """The latest document; starts a refresh if it is due."""
        with self._lock:
            if self._thread is None and time.monotonic() >= self._due:
                self._thread = threading.Thread(target=self._refresh, name="dashboard")
                self._thread.start()
            thread = self._thread
        if thread is not None:
            thread.join(FIRST_WAIT_SECONDS if self._document is None else WAIT_SECONDS)
        with self._lock:
            return Snapshot(self._document, self._error, self._thread is not None)

    def _refresh(self) -> None:
        """Make the document, and again after one that is the outlook only."""
        unfinished = True
        while unfinished:
            document, message = None, ""
            try:
                document = self.make_document()
            except (ValueError, TypeError, OSError) as error:
                message = str(error)
            except Exception:
                log.exception("dashboard: refresh failed")
                message = "internal error while refreshing the dashboard; see the server's log"
            unfinished = document is not None and document["state"] == "outlook"
            with self._lock:
                self._document, self._error = document or self._document, message
                if not unfinished:
                    self._due = time.monotonic() + (RETRY_SECONDS if message else self.interval_seconds)
                    self._thread = None
