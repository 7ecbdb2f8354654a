"""Training checkpoint: one file, written atomically."""

import hashlib
import io
import time
from collections.abc import Iterable, Mapping
from glob import escape
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from torchcommodity.data import write_atomic


class Resumable(Protocol):
    """A training with a state for resuming, in types that `torch.load(weights_only=True)` accepts."""

    def state_dict(self) -> dict[str, Any]:
        """The state."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore it."""


class Checkpoint:
    """Checkpoint file of one training run.

    Args:
        path: the file; None disables checkpoints.
        interval_seconds: minimum time between two writes.
        fingerprint: identifies the run, see `training_fingerprint`.
        writer: whether this process writes the file; every process reads it.
    """

    def __init__(self, path: Path | None, interval_seconds: float, fingerprint: str, *, writer: bool = True) -> None:
        self.path, self.interval_seconds, self.fingerprint, self.writer = path, interval_seconds, fingerprint, writer
        self._last_write = time.monotonic()

    def restore(self, trainer: Resumable) -> None:
        """Load the file into the trainer, if there is one.

        Raises:
            ValueError: the file is damaged or belongs to another training run.
        """
        if self.path is None or not self.path.exists():
            return
        raw = self.path.read_bytes()
        if hashlib.sha256(raw[32:]).digest() != raw[:32]:
            raise ValueError(f"train: checkpoint {self.path} is damaged (checksum mismatch); delete it to start over")
        state = torch.load(io.BytesIO(raw[32:]), weights_only=True)
        if state["fingerprint"] != self.fingerprint:
            raise ValueError(
                f"train: checkpoint {self.path} belongs to other prices, settings, seed, number of processes or torch "
                "version; delete it to start over"
            )
        trainer.load_state_dict(state)

    def save(self, trainer: Resumable) -> None:
        """Write the file if `interval_seconds` have passed since the last write."""
        if self.path is None or not self.writer or time.monotonic() - self._last_write < self.interval_seconds:
            return
        buffer = io.BytesIO()
        torch.save({"fingerprint": self.fingerprint, **trainer.state_dict()}, buffer)
        content = buffer.getvalue()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(self.path, hashlib.sha256(content).digest() + content)
        self._last_write = time.monotonic()

    def remove(self) -> None:
        """Delete the file at the end of training."""
        if self.path is not None and self.writer:
            self.path.unlink(missing_ok=True)
            # left behind by a process that was killed while writing
            for partial in self.path.parent.glob(f".{escape(self.path.name)}.*.part"):
                partial.unlink(missing_ok=True)


def training_fingerprint(inputs: Iterable[Tensor | None], *settings: object) -> str:
    """sha256 of everything that the result of a training run depends on."""
    digest = hashlib.sha256(repr((torch.__version__, settings)).encode())
    for x in inputs:
        digest.update(b"none" if x is None else x.contiguous().numpy().tobytes())
    return digest.hexdigest()
