"""Artifacts that one version of torch wrote and another reads.

PyTorch reads a graph of another version as long as the major version of its schema is the same. Within it, a newer
torch may write operators, arguments or fields that an older one does not know, and machine code fits its own version.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from torchcommodity.export._devices import WrongDeviceError

RELEASE = re.compile(r"(\d{1,4}\.\d{1,4})[\w.+]{0,40}")


class OtherTorchError(ValueError):
    """An artifact does not load with a torch that did not write it; the message is the end of a sentence."""


@contextmanager
def explain_other_torch(writer: str) -> Iterator[None]:
    """Say which torch wrote the artifact and which one reads it, if it does not load and they are not the same."""
    try:
        yield
    except WrongDeviceError:
        raise
    except Exception as error:
        ours, theirs = release(torch.__version__), release(writer)
        if theirs in ("", ours):
            raise
        raise OtherTorchError(
            f"was written by torch {writer} and does not load with torch {torch.__version__}; load it with torch "
            f"{theirs}, or export the forecaster again with torch {ours}; got {str(error).strip()}"
        ) from error


def release(version: str) -> str:
    """Minor release of a version, `2.15` of `2.15.0+cpu`; empty if it is not the version of a torch."""
    match = RELEASE.fullmatch(version)
    return match[1] if match else ""
