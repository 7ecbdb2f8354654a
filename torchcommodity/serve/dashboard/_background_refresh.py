"""Slow work beside the server: one thread at a time, its last answer kept, looked at again at most once a minute."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

EVERY = 60.0  # seconds between two looks at the prices, and only if somebody asks
AFTER_ERROR = 2.0  # seconds until somebody may try again
PATIENCE = 1.0  # seconds that the first answer is waited for

log = logging.getLogger("torchcommodity.serve")


class Answer(NamedTuple):
    """What there is to show now.

    Args:
        document: the last one made, if any.
        error: in words, why the newest could not be made; "" = it was.
        working: whether a newer one is being made.
    """

    document: dict[str, Any] | None
    error: str
    working: bool


@dataclass
class Renewal:
    """Asks `make` in a thread of its own when somebody looks and the last answer is old."""

    make: Callable[[], dict[str, Any]]
    every: float = EVERY
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _document: dict[str, Any] | None = field(default=None, init=False)
    _error: str = field(default="", init=False)
    _due: float = field(default=0.0, init=False)

    def look(self) -> Answer:
        """The newest answer; where there is none yet, after a moment's patience."""
        with self._lock:
            if self._thread is None and time.monotonic() >= self._due:
                self._thread = threading.Thread(target=self._work, name="dashboard")
                self._thread.start()
            thread = self._thread
        if thread is not None:
            thread.join(PATIENCE if self._document is None else 0.05)
        with self._lock:
            return Answer(self._document, self._error, self._thread is not None)

    def _work(self) -> None:
        document, error = None, ""
        try:
            document = self.make()
        except (ValueError, TypeError, OSError) as problem:
            error = str(problem)
        except Exception:
            log.exception("dashboard: the page could not be made")
            error = "the server failed while it made this page; its log says why"
        with self._lock:
            self._document, self._error = document or self._document, error
            self._due = time.monotonic() + (AFTER_ERROR if error else self.every)
            self._thread = None
