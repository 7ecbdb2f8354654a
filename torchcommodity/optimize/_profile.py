"""Profile of a forecast: time and memory by operator and by stage."""

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
from torchcommodity.optimize._benchmark_inputs import benchmark_inputs
from torchcommodity.training import ModelInputs, one_thread

PREFIX = "torchcommodity."
STAGES = {"har": "econometric part", "network": "network", "quantiles": "quantiles"}
OTHER = "other"
PYTHON = "Python overhead"


class OperatorCost(NamedTuple):
    """Cost of one operator with one set of input shapes, per call of the model."""

    name: str
    shapes: str
    calls: float
    microseconds: float  # self time
    share: float  # of the total time
    bytes: int  # allocated minus freed


@dataclass(frozen=True)
class Profile:
    """Time and memory of one call of a model."""

    rows: int
    batch_size: int
    microseconds: float  # one call, including profiler overhead
    stages: dict[str, float]  # share of the time per stage, sums to 1
    operators: tuple[OperatorCost, ...]  # most expensive first; with Python overhead they sum to the total
    peak_bytes: int  # peak memory in addition to inputs and weights

    @property
    def largest(self) -> tuple[str, ...]:
        """Description of the three largest costs; each operator is summed over its shapes."""
        costs = [_sum_shapes(name, self.operators) for name in {cost.name for cost in self.operators}]
        return tuple(_describe(cost) for cost in sorted(costs, key=lambda cost: -cost.microseconds)[:3])


@one_thread()
@torch.no_grad()
def profile(
    forecaster: Forecaster,
    inputs: ModelInputs,
    *,
    rows: int = 1024,
    batch_size: int = 1,
    repeats: int = 5,
    trace: str | Path | None = None,
) -> Profile:
    """Profile the forecast from the last rows of real prices with torch.profiler.

    Args:
        forecaster: result of `forecast.fit` or `Forecaster.load`.
        inputs: result of `training.model_inputs`.
        rows: rows of prices per forecast.
        batch_size: forecasts per call, all of the same prices.
        repeats: profiled calls, after two warm-up calls; the result is their mean.
        trace: trace file of all calls, for chrome://tracing or ui.perfetto.dev.

    Returns:
        A Profile; times in microseconds per call, on one CPU thread.

    Raises:
        ValueError: `rows` exceeds the number of prices, or an argument is below 1.

    Example:
        >>> from torchcommodity import data, forecast, models
        >>> from torchcommodity.training import FitConfig, TrainConfig, model_inputs
        >>> panel = data.embedded(["WTI"]).between("2014-01-01", "2018-12-31")
        >>> config = FitConfig(models.HarLstmConfig(), TrainConfig(epochs=0))
        >>> result = profile(forecast.fit(panel, config), model_inputs(panel, 126), rows=600)
        >>> sorted(result.stages)
        ['econometric part', 'network', 'other', 'quantiles']
    """
    if repeats < 1:
        raise ValueError(f"profile: repeats must be at least 1; got {repeats}")
    batch = benchmark_inputs(inputs, rows, batch_size, forecaster.horizons[-1])
    model = forecaster.model.eval()
    for _ in range(2):
        model(*batch)
    with (
        _record_stages(model),
        torch.profiler.profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as profiler,
    ):
        for _ in range(repeats):
            with record_function(PREFIX + "forecast"):
                model(*batch)
    if trace is not None:
        profiler.export_chrome_trace(str(trace))
    events = list(profiler.events() or [])
    total = _stage_time(events, "forecast")
    return Profile(
        rows=rows,
        batch_size=batch_size,
        microseconds=total / repeats,
        stages=_stage_shares(events, total),
        operators=_operator_costs(profiler, total, repeats),
        peak_bytes=_peak_bytes(profiler),
    )


def peak_bytes(call: Any, inputs: tuple[Any, ...]) -> int:
    """Peak memory of a call in addition to inputs and weights."""
    with torch.profiler.profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        call(*inputs)
    return _peak_bytes(profiler)


@contextmanager
def _record_stages(model: Any) -> Iterator[None]:
    """Record the econometric part, the network's layers and the quantiles as stages."""
    active: list[Any] = []

    def enter(*_: Any) -> None:
        active.append(record_function(PREFIX + "network"))
        active[-1].__enter__()

    def leave(*_: Any) -> None:
        active.pop().__exit__(None, None, None)

    hooks = []
    for name, layer in model.named_children():
        if name != "har":
            hooks += [layer.register_forward_pre_hook(enter), layer.register_forward_hook(leave)]
    forward, quantiles = model.har.forward, model.har.quantiles
    model.har.forward, model.har.quantiles = _recorded("har", forward), _recorded("quantiles", quantiles)
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        del model.har.forward, model.har.quantiles


def _recorded(stage: str, function: Any) -> Any:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with record_function(PREFIX + stage):
            return function(*args, **kwargs)

    return wrapper


def _stage_time(events: list[FunctionEvent], stage: str) -> float:
    """Microseconds of a stage; stages do not nest in themselves."""
    return float(sum(event.cpu_time_total for event in events if event.name == PREFIX + stage))


def _stage_shares(events: list[FunctionEvent], total: float) -> dict[str, float]:
    shares = {title: _stage_time(events, stage) / total for stage, title in STAGES.items()}
    return shares | {OTHER: 1 - sum(shares.values())}


def _operator_costs(profiler: Any, total: float, repeats: int) -> tuple[OperatorCost, ...]:
    costs = [
        OperatorCost(
            event.key,
            str(event.input_shapes),
            event.count / repeats,
            event.self_cpu_time_total / repeats,
            event.self_cpu_time_total / total,
            event.self_cpu_memory_usage // repeats,
        )
        for event in profiler.key_averages(group_by_input_shape=True)
        if not event.key.startswith((PREFIX, "["))
    ]
    overhead = 1 - sum(cost.share for cost in costs)
    costs.append(OperatorCost(PYTHON, "", 1, overhead * total / repeats, overhead, 0))
    return tuple(sorted(costs, key=lambda cost: -cost.microseconds))


def _peak_bytes(profiler: Any) -> int:
    """Largest running sum of allocations and releases in order of time."""
    current = peak = 0
    for event in sorted(profiler.profiler.kineto_results.events(), key=lambda event: event.start_ns()):
        if event.name() == "[memory]":
            current += event.nbytes()
            peak = max(peak, current)
    return int(peak)


def _sum_shapes(name: str, costs: tuple[OperatorCost, ...]) -> OperatorCost:
    calls, microseconds, share, memory = (
        sum(getattr(cost, field) for cost in costs if cost.name == name)
        for field in ("calls", "microseconds", "share", "bytes")
    )
    shapes = next(cost.shapes for cost in costs if cost.name == name)  # of the most expensive
    return OperatorCost(name, shapes, calls, microseconds, share, memory)


def _describe(cost: OperatorCost) -> str:
    time = f"{cost.share:.0%} of the time, {cost.microseconds:.0f} us"
    if cost.name == PYTHON:
        return f"{PYTHON}, including the profiler's: {time}; compiling removes it"
    calls = "1 call" if cost.calls == 1 else f"{cost.calls:g} calls, the most expensive on {cost.shapes}"
    return f"{cost.name}, {calls}: {time}"
