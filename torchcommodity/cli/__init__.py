"""The command line: one file a command, each parses and calls one function."""

import os
import signal
import sys
from types import FrameType

__all__ = ["main"]

EXTRA = "torchcommodity: the command line needs {}, which is not installed: pip install 'torchcommodity[forecast]'"


def main() -> None:
    """`torchcommodity` as typed in a shell; says what to install where the `forecast` extra is missing."""
    signal.signal(signal.SIGTERM, _terminated)
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch's profiler would print each time that it starts and stops
    try:
        from torchcommodity.cli._application import app
    except ModuleNotFoundError as error:
        if (error.name or "torchcommodity").startswith("torchcommodity"):
            raise
        sys.exit(EXTRA.format(error.name))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    app()


def _terminated(_number: int, _frame: FrameType | None) -> None:
    # an exception, so that temporary files are taken away on the way out
    sys.exit(128 + signal.SIGTERM)
