"""Sum the events of the profiler to the costs of a step."""

from collections.abc import Mapping

from torch.autograd.profiler_util import FunctionEvent

from torchcommodity.optimize._profile.measure import Measurement, ProfiledStep, peak_bytes
from torchcommodity.optimize._profile.result import IDLE, PYTHON, WAITING, OperatorCost, Profile
from torchcommodity.optimize._profile.stages import (
    BACKWARD,
    COPY,
    DATA,
    ECONOMETRIC,
    FORWARD,
    LOSS,
    NETWORK,
    OPTIMIZER,
    PREFIX,
    QUANTILES,
    STEP,
    stage_layers,
    stage_shares,
)  # fmt: skip

ALLOCATORS = {"aten::empty", "aten::empty_strided", "aten::empty_like", "aten::resize_"}
Location = Mapping[tuple[str, str], str]  # of an operator with its shapes


def summarize(run: ProfiledStep, measurement: Measurement, locations: Location, threads: int) -> Profile:
    """The Profile of the measured steps."""
    events = list(measurement.profiler.events() or [])
    steps = sorted((e for e in events if e.name == PREFIX + STEP), key=lambda e: e.time_range.start)
    total = float(sum(e.cpu_time_total for e in steps[: measurement.steps]))
    layers = [name for name, _ in stage_layers(run.module)]
    names = [DATA, COPY, ECONOMETRIC, NETWORK, QUANTILES, *layers, FORWARD, LOSS, BACKWARD, OPTIMIZER]
    return Profile(
        device=str(run.device),
        threads=threads,
        steps=measurement.steps,
        training=run.loss_fn is not None,
        microseconds=total / measurement.steps,
        stages=stage_shares(events, total, list(dict.fromkeys(names))),
        operators=_operator_costs(measurement, events, total, locations, run.stages.cuda),
        peak_bytes=peak_bytes(measurement.profiler, run.stages.cuda),
        notes=measurement.notes,
    )


def _operator_costs(
    measurement: Measurement, events: list[FunctionEvent], total: float, locations: Location, cuda: bool
) -> tuple[OperatorCost, ...]:
    groups: dict[tuple[str, str], list[FunctionEvent]] = {}
    for event in events:
        # kernels are counted with the operator that launched them
        if event.device_type.name == "CPU" and not event.is_user_annotation and not event.name.startswith("["):
            groups.setdefault((event.name, str(event.input_shapes)), []).append(event)
    costs = []
    for (name, shapes), calls in groups.items():
        time = sum(event.self_device_time_total if cuda else event.self_cpu_time_total for event in calls)
        memory = sum(0 if _allocates_for_another(event) else _allocated(event, cuda) for event in calls)
        count, steps = len(calls), measurement.steps
        text = ", ".join(str(shape) for shape in calls[0].input_shapes or () if shape)  # of tensors
        place = locations.get((name, shapes), "")
        costs.append(OperatorCost(name, text, count / steps, time / steps, time / total, memory // steps, place))
    loading = [event for event in events if event.name == PREFIX + DATA]  # outside of operators it waits
    outside = (event.cpu_time_total - sum(map(_inside, event.cpu_children)) for event in loading)
    waiting = sum(map(float, outside)) / total
    overhead = max(1 - waiting - sum(cost.share for cost in costs), 0.0)
    for name, share in ((IDLE if cuda else PYTHON, overhead), (WAITING, waiting)):
        costs.append(OperatorCost(name, "", 1, share * total / measurement.steps, share, 0))
    return tuple(sorted(costs, key=lambda cost: -cost.microseconds))


def _allocated(event: FunctionEvent, cuda: bool) -> int:
    """Bytes allocated minus freed by an operator, with the memory that it takes by `aten::empty` and similar."""
    own = event.self_device_memory_usage if cuda else event.self_cpu_memory_usage
    return int(own) + sum(_allocated(child, cuda) for child in event.cpu_children if child.name in ALLOCATORS)


def _allocates_for_another(event: FunctionEvent) -> bool:
    parent = event.cpu_parent
    return event.name in ALLOCATORS and parent is not None and not parent.is_user_annotation


def _inside(event: FunctionEvent) -> float:
    """Microseconds of operators in an event."""
    return sum(map(_inside, event.cpu_children)) if event.is_user_annotation else float(event.cpu_time_total)
