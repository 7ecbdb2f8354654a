"""A row of the speed table: an operator on inputs of one size, and its peers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

Call = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """`function` takes the inputs. A peer takes them too and returns the call to time, after any conversion.

    The floor follows from the bytes of inputs and outputs. `timed`, if given, is timed instead of `function`, and is
    made like a peer: a backward pass, or a training step.
    """

    operator: str  # its contract must pass; "" for a layer made of torch's own operators
    setting: str  # sizes and arguments, as shown in the table
    inputs: Callable[[], tuple[Tensor, ...]]
    function: Callable[..., Any]
    peers: dict[str, Callable[..., Call]] = field(default_factory=dict)
    timed: Callable[..., Call] | None = None
    name: str = ""  # the public name, if it is not the operator's
    goal: float | None = None  # speedup over the fastest peer that the project aims at

    @property
    def title(self) -> str:
        return self.name or self.operator


def uniform(*shape: int, dtype: torch.dtype = torch.float32) -> Callable[[], tuple[Tensor, ...]]:
    """One panel of values between 1 and 2."""
    return lambda: (1 + torch.rand(shape, dtype=dtype, generator=torch.Generator().manual_seed(0)),)


def columns(panel: Tensor) -> np.ndarray:
    """Each series contiguous and in float64, as libraries for single series need it."""
    return np.ascontiguousarray(panel.numpy().T, dtype=np.float64)
