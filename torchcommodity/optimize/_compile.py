"""Compile a model, and measure compile time, numerical difference and speedup."""

import time
from typing import Any, NamedTuple

import torch
from torch import nn

from torchcommodity.optimize._benchmark_inputs import BatchInputs
from torchcommodity.optimize._speedup import Speedup, speedup, time_interleaved
from torchcommodity.training import one_thread


class CompileResult(NamedTuple):
    """A compiled model and its measurements."""

    model: Any
    compile_seconds: float  # duration of the first call
    max_difference: float  # largest absolute difference of a forecast from the eager model's
    speedup: Speedup

    def __str__(self) -> str:
        first_call = f"the first call took {self.compile_seconds:.1f} s"
        return f"{self.speedup}; {first_call}; forecasts differ by {self.max_difference:.1e}"


@one_thread()
@torch.no_grad()
def compile(model: nn.Module, inputs: BatchInputs, *, rounds: int = 30) -> CompileResult:
    """Compile a model with torch.compile, and time it against the eager model in interleaved calls.

    Args:
        model: a model of `models.MODELS`; it is set to evaluation mode.
        inputs: real prices (B, T, N), rolls and curve, see `benchmark_inputs`. Other shapes are recompiled.
        rounds: timed calls of each model, after a warm-up.

    Returns:
        A CompileResult, which prints "no significant speedup" where the interval of the ratio contains 1.

    Raises:
        ValueError: fewer than 5 rounds.
    """
    model = model.eval()
    expected = model(*inputs)
    compiled = torch.compile(model, fullgraph=True, dynamic=False)
    start = time.perf_counter()
    result = compiled(*inputs)
    compile_seconds = time.perf_counter() - start
    valid = torch.isfinite(expected)
    max_difference = float((result - expected)[valid].abs().max()) if valid.any() else 0.0
    times = time_interleaved({"eager": lambda: model(*inputs), "compiled": lambda: compiled(*inputs)}, rounds)
    return CompileResult(compiled, compile_seconds, max_difference, speedup(times["eager"], times["compiled"]))
