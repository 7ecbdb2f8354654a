"""torch.compile with its price: how long the first call takes, and a gain only where it is more than noise."""

import time
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from torchcommodity.optimize._latency import Gain, gain, interleaved
from torchcommodity.training import one_thread

Inputs = tuple[Tensor, Tensor | None, Tensor | None]


class Compiled(NamedTuple):
    """A compiled model and what it cost and brought."""

    model: Any
    cold_seconds: float  # of the first call, which compiles
    difference: float  # largest, from the eager model's forecasts
    gain: Gain

    def __str__(self) -> str:
        return f"{self.gain}; the first call took {self.cold_seconds:.1f} s; forecasts differ by {self.difference:.1e}"


@one_thread()
@torch.no_grad()
def compile(model: nn.Module, inputs: Inputs, *, rounds: int = 30) -> Compiled:
    """Compile a model for inputs of these shapes and compare it with itself, call by call in turn.

    Args:
        model: a forecaster's, in evaluation mode.
        inputs: real prices (B, T, N), rolls, curve. Another shape compiles again.
        rounds: calls of each; the compiled model has been called before.

    Returns:
        a Compiled, which prints "no gain shown" where the interval of the ratio of medians holds 1.

    Raises:
        ValueError: fewer than 5 rounds.
    """
    model = model.eval()
    expected = model(*inputs)
    compiled = torch.compile(model, fullgraph=True, dynamic=False)
    begun = time.perf_counter()
    found = compiled(*inputs)
    cold = time.perf_counter() - begun
    known = torch.isfinite(expected)
    difference = float((found - expected)[known].abs().max()) if known.any() else 0.0
    times = interleaved({"eager": lambda: model(*inputs), "compiled": lambda: compiled(*inputs)}, rounds)
    return Compiled(compiled, cold, difference, gain(times["eager"], times["compiled"]))
