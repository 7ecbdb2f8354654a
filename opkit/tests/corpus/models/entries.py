"""Entries of the corpus of training set-ups: a model, a batch and a loss, and what is wrong with them."""

import importlib
import linecache
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Setup = tuple[nn.Module, Any, Callable[..., Any]]


@dataclass(frozen=True)
class Entry:
    """A set-up, the accepted kinds of its first error (none if it is healthy), and texts in the line to blame."""

    name: str
    category: str
    make: Callable[[], Setup]
    kinds: frozenset[str] = frozenset()
    lines: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        return not self.kinds

    @property
    def held_out(self) -> bool:
        """Whether it is in the third that nobody looks at while `diagnose` is mended."""
        return crc32(self.name.encode()) % 3 == 0

    def accepts(self, kind: str, location: str) -> bool:
        file, _, number = location.rpartition(":")
        line = linecache.getline(file, int(number)) if number.isdigit() else ""
        return kind in self.kinds and (not self.lines or any(text in line for text in self.lines))


def faulty(*kinds: str, line: str | tuple[str, ...] = ()) -> Callable[[Callable[[], Setup]], Entry]:
    """Declare a faulty set-up: accepted kinds, and texts of which the blamed source line contains one."""
    lines = (line,) if isinstance(line, str) else line
    return lambda make: Entry(make.__name__, _category(make), make, frozenset(kinds), lines)


def healthy(make: Callable[[], Setup]) -> Entry:
    """Declare a set-up that learns."""
    return Entry(make.__name__, _category(make), make)


def _category(make: Callable[[], Setup]) -> str:
    return make.__module__.rpartition(".")[2]


def corpus() -> Iterator[Entry]:
    """All entries, in the order of files and lines."""
    for path in sorted(Path(__file__).parent.glob("*.py")):
        module = importlib.import_module(f"corpus.models.{path.stem}")
        yield from (value for value in vars(module).values() if isinstance(value, Entry))


class Between(nn.Module):
    """Two linear layers with a function between them."""

    def __init__(self, middle: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.first, self.last, self.middle = nn.Linear(3, 8), nn.Linear(8, 1), middle

    def forward(self, x: Tensor) -> Tensor:  # (N, 3) -> (N, 1)
        return self.last(self.middle(self.first(x)))


def between(middle: Callable[[Tensor], Tensor]) -> Setup:
    """A regression with `middle` between two layers, (N, 8) -> (N, 8)."""
    return Between(middle), regression(), F.mse_loss


def with_loss(loss_fn: Callable[..., Any]) -> Setup:
    """A sound regression model with the given loss."""
    return Between(torch.tanh), regression(), loss_fn


def regression() -> tuple[Tensor, Tensor]:
    return torch.randn(16, 3), torch.randn(16, 1)


def classification(classes: int = 4) -> tuple[Tensor, Tensor]:
    return torch.randn(16, 3), torch.randint(classes, (16,))


def classifier(*tail: nn.Module, classes: int = 4) -> nn.Sequential:
    """A classifier of three features whose logits pass through `tail`."""
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, classes), *tail)
