"""A row of the table of speeds: what is measured, on which inputs, and against whom."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

Call = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """`ours` takes the inputs. A peer takes them and gives the call to be timed, so that it may convert first.

    The floor follows from the bytes of inputs and outputs. `timed`, if given, is what is timed of ours instead of the
    forward pass, made like a peer: a backward pass, a training step.
    """

    operator: str  # its contract must be green; "" for a layer of torch's own operators
    what: str  # setting and shape, as the table shows them
    inputs: Callable[[], tuple[Tensor, ...]]
    ours: Callable[..., Any]
    peers: dict[str, Callable[..., Call]] = field(default_factory=dict)
    timed: Callable[..., Call] | None = None
    verb: str = ""  # the public name, where that is not the operator's
    target: float | None = None  # how many times faster than the fastest peer it is meant to be


def uniform(*shape: int, dtype: torch.dtype = torch.float32) -> Callable[[], tuple[Tensor, ...]]:
    """Prices between 1 and 2."""
    return lambda: (1 + torch.rand(shape, dtype=dtype, generator=torch.Generator().manual_seed(0)),)


def columns(panel: Tensor) -> np.ndarray:
    """Each series contiguous and in float64, as libraries of single series want it."""
    return np.ascontiguousarray(panel.numpy().T, dtype=np.float64)
