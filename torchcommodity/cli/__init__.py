"""The command line: one module per command, each parses its options and calls the library."""

import os
import signal
import sys
from types import FrameType

__all__ = ["main"]

MISSING = "torchcommodity: the command line needs {}, which is not installed: pip install 'torchcommodity[forecast]'"


def main() -> None:
    """Run `torchcommodity` with the arguments of the process; exits with the status of the command."""
    signal.signal(signal.SIGTERM, _exit_on_sigterm)
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch's profiler logs each start and stop otherwise
    try:
        from torchcommodity.cli._application import app
    except ModuleNotFoundError as error:
        if (error.name or "torchcommodity").startswith("torchcommodity"):
            raise
        sys.exit(MISSING.format(error.name))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    app(prog_name="torchcommodity")


def _exit_on_sigterm(_number: int, _frame: FrameType | None) -> None:
    # raises SystemExit, so that temporary files are removed on the way out
    os.write(2, b"Error: terminated by SIGTERM\n")  # not print: the signal may have come in the middle of one
    sys.exit(128 + signal.SIGTERM)
