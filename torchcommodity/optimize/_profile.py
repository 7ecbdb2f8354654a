"""Where the time and the memory of a forecast go: by operator, and by stage of the price's way."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.autograd.profiler import record_function
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity

from torchcommodity.forecast import Forecaster
from torchcommodity.optimize._inputs import batch
from torchcommodity.training import ModelInputs, one_thread

MARK = "torchcommodity."
STAGES = {"har": "econometric part", "network": "network", "quantiles": "quantiles"}
OTHER = "between the stages"
PYTHON = "Python between the operators"


class Cost(NamedTuple):
    """One operator with one set of input shapes, of one forecast."""

    name: str
    shapes: str
    calls: float
    microseconds: float  # in the operator itself, not in those that it calls
    share: float  # of the whole forecast
    bytes: int  # allocated by it, less what it gave back


@dataclass(frozen=True)
class Profile:
    """A forecast taken apart."""

    rows: int
    batch: int
    microseconds: float  # one forecast, with the profiler's own burden
    stages: dict[str, float]  # share of the time by stage, sums to 1
    operators: tuple[Cost, ...]  # the costliest first; with what is spent in none of them, they are the whole
    peak_bytes: int  # most memory held at once beyond inputs and weights

    @property
    def largest(self) -> tuple[str, ...]:
        """The three largest costs in plain words, an operator with all its shapes as one."""
        costs = [_together(name, self.operators) for name in {cost.name for cost in self.operators}]
        return tuple(_in_words(cost) for cost in sorted(costs, key=lambda cost: -cost.microseconds)[:3])


@one_thread()
@torch.no_grad()
def profile(
    forecaster: Forecaster,
    past: ModelInputs,
    *,
    rows: int = 1024,
    size: int = 1,
    repeats: int = 5,
    trace: str | Path | None = None,
) -> Profile:
    """Take the forecast of `forecaster` from the last rows of real prices apart with torch.profiler.

    Args:
        forecaster: of `forecast.fit` or `Forecaster.load`.
        past: prices in the unit they have, as `training.model_inputs` gives them; NaN is missing.
        rows: of prices that a forecast reads.
        size: forecasts in one call, all of the same prices.
        repeats: forecasts that are averaged, after two that warm up.
        trace: where to write the trace of all of them, for chrome://tracing or ui.perfetto.dev.

    Returns:
        a Profile; times in microseconds per call, on one thread of the CPU.

    Raises:
        ValueError: fewer prices than `rows`, or a count below 1.

    Example:
        >>> from torchcommodity import data, forecast, models
        >>> from torchcommodity.training import model_inputs
        >>> panel = data.embedded().select(["WTI"]).between("2014-01-01", "2018-12-31")
        >>> config = forecast.FitConfig(model=models.HarLstmConfig(), train=forecast.TrainConfig(epochs=0))
        >>> found = profile(forecast.fit(panel, config), model_inputs(panel, 126), rows=600)
        >>> sorted(found.stages)
        ['between the stages', 'econometric part', 'network', 'quantiles']
    """
    if repeats < 1:
        raise ValueError(f"profile: repeats must be at least 1; got {repeats}")
    inputs = batch(past, rows, size, forecaster.horizons[-1])
    model = forecaster.model.eval()
    activities = [ProfilerActivity.CPU]
    for _ in range(2):
        model(*inputs)
    with (
        staged(model),
        torch.profiler.profile(activities=activities, record_shapes=True, profile_memory=True) as kineto,
    ):
        for _ in range(repeats):
            with record_function(MARK + "forecast"):
                model(*inputs)
    if trace is not None:
        kineto.export_chrome_trace(str(trace))
    events = list(kineto.events() or [])
    whole = _time(events, "forecast")
    return Profile(
        rows, size, whole / repeats, _stages(events, whole), _operators(kineto, whole, repeats), _peak(kineto)
    )


@contextmanager
def staged(model: Any) -> Iterator[None]:
    """Name the stages of a model for the profiler: its econometric part, its layers, its quantiles."""
    open_: list[Any] = []

    def enter(*_: Any) -> None:
        open_.append(record_function(MARK + "network"))
        open_[-1].__enter__()

    def leave(*_: Any) -> None:
        open_.pop().__exit__(None, None, None)

    hooks = []
    for name, layer in model.named_children():
        if name != "har":
            hooks += [layer.register_forward_pre_hook(enter), layer.register_forward_hook(leave)]
    forward, quantiles = model.har.forward, model.har.quantiles
    model.har.forward, model.har.quantiles = _named("har", forward), _named("quantiles", quantiles)
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        del model.har.forward, model.har.quantiles


def _named(stage: str, call: Any) -> Any:
    def recorded(*given: Any, **more: Any) -> Any:
        with record_function(MARK + stage):
            return call(*given, **more)

    return recorded


def _time(events: list[FunctionEvent], stage: str) -> float:
    """Microseconds of a stage, where it is not inside another call of itself."""
    return float(sum(event.cpu_time_total for event in events if event.name == MARK + stage))


def _stages(events: list[FunctionEvent], whole: float) -> dict[str, float]:
    shares = {words: _time(events, stage) / whole for stage, words in STAGES.items()}
    return shares | {OTHER: 1 - sum(shares.values())}


def _operators(kineto: Any, whole: float, repeats: int) -> tuple[Cost, ...]:
    found = [
        Cost(
            event.key,
            str(event.input_shapes),
            event.count / repeats,
            event.self_cpu_time_total / repeats,
            event.self_cpu_time_total / whole,
            event.self_cpu_memory_usage // repeats,
        )
        for event in kineto.key_averages(group_by_input_shape=True)
        if not event.key.startswith((MARK, "["))
    ]
    outside = 1 - sum(cost.share for cost in found)
    found.append(Cost(PYTHON, "", 1, outside * whole / repeats, outside, 0))
    return tuple(sorted(found, key=lambda cost: -cost.microseconds))


def peak(call: Any, inputs: tuple[Any, ...]) -> int:
    """Most bytes that a call holds at once beyond inputs and weights."""
    with torch.profiler.profile(activities=[ProfilerActivity.CPU], profile_memory=True) as kineto:
        call(*inputs)
    return _peak(kineto)


def _peak(kineto: Any) -> int:
    """The largest running sum of what was allocated and given back, in the order of time."""
    held = most = 0
    for event in sorted(kineto.profiler.kineto_results.events(), key=lambda event: event.start_ns()):
        if event.name() == "[memory]":
            held += event.nbytes()
            most = max(most, held)
    return int(most)


def _together(name: str, costs: tuple[Cost, ...]) -> Cost:
    calls, microseconds, share, held = (
        sum(getattr(cost, field) for cost in costs if cost.name == name)
        for field in ("calls", "microseconds", "share", "bytes")
    )
    shapes = next(cost.shapes for cost in costs if cost.name == name)  # the costliest
    return Cost(name, shapes, calls, microseconds, share, held)


def _in_words(cost: Cost) -> str:
    told = f"{cost.share:.0%} of the time, {cost.microseconds:.0f} us"
    if cost.name == PYTHON:
        return f"{PYTHON}, with the profiler's own burden: {told}; compiling takes it away"
    calls = "once" if cost.calls == 1 else f"{cost.calls:g} times, the costliest on {cost.shapes}"
    return f"{cost.name}, {calls}: {told}"
