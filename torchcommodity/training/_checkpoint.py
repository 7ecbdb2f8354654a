"""A training in progress as one file, that is whole or absent whenever the process dies."""

import hashlib
import io
import os
import time
from pathlib import Path
from typing import Any

import torch

from torchcommodity.training._inputs import ModelInputs
from torchcommodity.training._trainer import Trainer


class Checkpoint:
    """The file of a training, or none.

    Args:
        path: of the file; None keeps nothing.
        every: seconds between two writes.
        mark: of the training, see `mark_of`.
        writes: whether this process writes it; all of them read it.
    """

    def __init__(self, path: Path | None, every: float, mark: str, *, writes: bool = True) -> None:
        self.path, self.every, self.mark, self.writes = path, every, mark, writes
        self._last = time.monotonic()

    def carry_on(self, learner: Trainer) -> None:
        """Bring the learner to where the file's was; leave it alone where there is no file.

        Raises:
            ValueError: the file is damaged, or is that of a training with another mark.
        """
        if self.path is not None and self.path.exists():
            learner.carry_on(_read(self.path, self.mark))

    def save(self, learner: Trainer) -> None:
        """Write the file if it is time."""
        if self.path is not None and self.writes and time.monotonic() - self._last >= self.every:
            _write(self.path, {"mark": self.mark, **learner.state()})
            self._last = time.monotonic()

    def remove(self) -> None:
        """The training is over."""
        if self.path is not None and self.writes:
            self.path.unlink(missing_ok=True)
            _beside(self.path).unlink(missing_ok=True)  # of a process that was killed while it wrote


def mark_of(past: ModelInputs, *settings: object) -> str:
    """sha256 of everything that a training depends on."""
    digest = hashlib.sha256(repr((torch.__version__, settings)).encode())
    for x in past:
        digest.update(b"none" if x is None else x.contiguous().numpy().tobytes())
    return digest.hexdigest()


def _write(path: Path, state: dict[str, Any]) -> None:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    content = buffer.getvalue()
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = _beside(path)
    with beside.open("wb") as file:
        file.write(hashlib.sha256(content).digest() + content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")


def _read(path: Path, mark: str) -> dict[str, Any]:
    raw = path.read_bytes()
    if hashlib.sha256(raw[32:]).digest() != raw[:32]:
        raise ValueError(f"train: checkpoint {path} is damaged: it does not have its checksum; delete it to start anew")
    state: dict[str, Any] = torch.load(io.BytesIO(raw[32:]), weights_only=True)
    if state["mark"] != mark:
        raise ValueError(
            f"train: checkpoint {path} is of other prices, settings, seed, number of processes or torch; "
            "delete it to start anew"
        )
    return state
