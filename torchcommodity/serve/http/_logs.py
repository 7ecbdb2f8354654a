"""Log lines of the server: JSON, or text on a terminal."""

import json
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timezone
from traceback import format_exception
from types import TracebackType
from typing import Any
from uuid import uuid4

log = logging.getLogger("torchcommodity.serve")
request_id: ContextVar[str | None] = ContextVar("request_id", default=None)  # of the request that is being served
TEXT = logging.Formatter("%(asctime)s %(levelname)s %(message)s")  # for a terminal
END = b"\x04\n"  # the last line of the pipe


def accept_request_id(header: str | None) -> str:
    """The request ID of a client if it is up to 128 plain characters, else a new one.

    >>> accept_request_id("4f1c-oil-desk"), len(accept_request_id("two words")), len(accept_request_id(None))
    ('4f1c-oil-desk', 32, 32)
    """
    return header if header and re.fullmatch(r"[A-Za-z0-9._:/+=@-]{1,128}", header) else uuid4().hex


class JsonFormatter(logging.Formatter):
    """One JSON object per record: time, level, logger, message, the request ID, `fields` of the record, a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        return json_line(
            record.levelname.lower(),
            record.name,
            record.getMessage(),
            created=record.created,
            **({"request_id": identity} if (identity := request_id.get()) else {}),
            **getattr(record, "fields", {}),
            **({"exception": self.formatException(record.exc_info)} if record.exc_info else {}),
        )


def json_line(level: str, logger: str, message: str, *, created: float, **fields: Any) -> str:
    """One log line as JSON."""
    moment = datetime.fromtimestamp(created, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return json.dumps({"time": moment, "level": level, "logger": logger, "message": message, **fields}, default=str)


@contextmanager
def logging_to_stderr() -> Iterator[None]:
    """Log to standard error: the server from level INFO on, all other libraries and Python's warnings from WARNING."""
    root, handler = logging.getLogger(), logging.StreamHandler(sys.stderr)
    handler.setFormatter(TEXT if sys.stderr.isatty() else JsonFormatter())
    root.addHandler(handler)
    log.setLevel(logging.INFO)
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        root.removeHandler(handler)


def redirect_stderr() -> Callable[[], None]:
    """Turn what this process and its children write to standard error into JSON lines, native libraries included.

    Lines that are JSON already pass unchanged; the logger of the others is `stderr`.

    Returns:
        Function that ends the redirection.
    """
    output, (read, write) = os.dup(2), os.pipe()
    os.dup2(write, 2)
    os.close(write)

    def copy_lines() -> None:
        with os.fdopen(read, "rb") as lines:
            for line in lines:
                if line == END:
                    return
                if line.strip():
                    if not line.startswith(b"{"):
                        message = line.decode("utf-8", "replace").rstrip()
                        level = "error" if message.startswith("Error: ") else "warning"  # the line that ends a command
                        line = json_line(level, "stderr", message, created=time.time()).encode() + b"\n"
                    os.write(output, line)

    thread = threading.Thread(target=copy_lines, name="log", daemon=True)
    thread.start()
    sys.excepthook = _print_exception
    threading.excepthook = lambda arguments: _print_exception(*arguments[:3])

    def close() -> None:
        sys.stderr.flush()
        os.write(2, b"\n" + END)  # the pipe need not end: children may still have it
        thread.join(timeout=1.0)
        os.dup2(output, 2)

    return close


def _print_exception(
    kind: type[BaseException], error: BaseException | None, traceback: TracebackType | None = None
) -> None:
    text = "".join(format_exception(kind, error, traceback))
    line = json_line("critical", log.name, f"{kind.__name__}: {error}", created=time.time(), exception=text)
    print(line, file=sys.stderr)  # noqa: T201
