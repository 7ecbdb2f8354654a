"""Parameters that the loss does not reach, and the line that breaks the link."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from torch_opkit._diagnose.backward import Edge
from torch_opkit._diagnose.findings import ModelFinding, Severity
from torch_opkit._diagnose.source import call_line
from torch_opkit._diagnose.step import Problem, TrainingStep
from torch_opkit._diagnose.structure import unused_layers
from torch_opkit._diagnose.trace import TO_PYTHON, Event
from torch_opkit._diagnose.zero import cut_findings, first_cut

BREAKS = {  # kind of event -> message, fix; the most likely cause first
    "frozen": ("requires_grad is set to False in the forward pass", "freeze layers once, before training"),
    "new_parameter": ("`nn.Parameter` in the forward pass makes a new leaf", "keep the Tensor, without nn.Parameter"),
    "detach": ("`detach` removes the result from the graph", "remove it, or detach only what is logged"),
    "data": ("`.data` has the values without their graph", "use the Tensor itself"),
    "no_grad": ("this line runs with gradients disabled", "move it out of `torch.no_grad` or `inference_mode`"),
    "copy": (
        "`torch.tensor` copies values without their graph",
        "use the Tensor itself, or `torch.stack` for several",
    ),
    "python": ("the value leaves PyTorch as a number or an array", "compute with Tensors and torch functions"),
    "not_differentiable": ("the result of this function has no gradient", "use a differentiable function"),
    "integer": ("the result is an integer or bool, which has no gradient", "use a smooth function instead"),
}
PRIORITY = tuple(BREAKS)
HIDDEN_WRITE = "values are changed where the graph does not see it, so gradients are those of the old values"


def hidden_writes(step: TrainingStep) -> list[ModelFinding]:
    """Results whose values are replaced through `data`, `detach()` or under no_grad, before the loss uses them."""
    fix = "compute a new Tensor: torch.where, torch.clamp, x * mask instead of a write into x"
    names, bits, findings = list(step.gradients), step.loss_bits, dict[str, ModelFinding]()
    for event in step.trace.events:
        if event.hidden_write and event.bit & bits:
            affected = tuple(name for i, name in enumerate(names) if event.sources >> i & 1)
            findings.setdefault(event.location, ModelFinding(event.kind, HIDDEN_WRITE, fix, affected, event.location))
    return list(findings.values())


def broken_links(problem: Problem, step: TrainingStep) -> list[ModelFinding]:
    """Findings for parameters without a gradient."""
    names, loss_bits = list(step.gradients), step.loss_bits
    missing = [i for i, name in enumerate(names) if step.gradients[name] is None]
    used = [i for i in missing if 1 << i in step.trace.last_use]
    some_learn = any(g is not None for g in step.gradients.values())
    groups, rest = defaultdict[tuple[str, object], list[tuple[int, Event]]](list), list[int]()
    cuts = dict[str, Edge]()
    for i in used:
        breaks = (e for e in step.trace.events if e.sources >> i & 1 and (e.bit & loss_bits or e.kind == "frozen"))
        event, edge = _most_likely(breaks), first_cut(step, names[i])
        if edge:  # the graph leads to it, but a backward returns None
            cuts[names[i]] = edge
        elif event:  # lines of one function under no_grad are one fault
            place = event.place.code if event.kind == "no_grad" else event.location
            groups[event.kind, place].append((i, event))
        else:
            rest.append(i)
    findings = []
    for members in groups.values():
        event, location = members[0][1], members[0][1].location
        if event.kind == "new_parameter":
            location = call_line(event.place.code, "Parameter") or location
        findings.append(_finding(event.kind, location, [names[i] for i, _ in members], "error"))
    findings += cut_findings(problem, step, cuts) + _without_break(problem, step, rest, some_learn)
    unused = [names[i] for i in missing if i not in used]
    return findings + unused_layers(problem.model, unused, problem.loss_fn, some_learn)


def _without_break(
    problem: Problem, step: TrainingStep, missing: Sequence[int], some_learn: bool
) -> list[ModelFinding]:
    """The loss depends on them outside of PyTorch, or not at all."""
    if not missing:
        return []
    names, loss_values = list(step.gradients), problem.loss_values()
    groups = defaultdict[tuple[str, str, Severity], list[int]](list)
    optional = step.outputs.optional(step.loss_bits) | (step.outputs.returned & ~step.loss_bits)
    for i in missing:
        if problem.loss_depends_on(names[i], loss_values):
            kind, location = _last_known(step, i)
            groups[kind, location, "error"].append(i)
        elif step.trace.last_use[1 << i].function in TO_PYTHON:
            groups["python", step.trace.last_use[1 << i].location, "error"].append(i)
        else:
            # the rest of the layer learns: the bias of a network whose derivative is trained has no effect
            layer, learning = names[i].rpartition(".")[0], [n for n, g in step.gradients.items() if g is not None]
            sibling = layer and any(name.rpartition(".")[0] == layer for name in learning)
            partly = some_learn and (optional >> i & 1 or sibling)
            severity: Severity = "note" if partly else "error"
            place = step.trace.last_use[1 << i]
            if not step.loss_bits & step.trace.parameter_bits:  # the loss is computed from something else
                place = step.trace.place_of(step.loss)
            groups["unused_result", place.location, severity].append(i)
    return [
        _finding(kind, location, [names[i] for i in group], severity)
        for (kind, location, severity), group in groups.items()
    ]


def _last_known(step: TrainingStep, i: int) -> tuple[str, str]:
    """Kind and line of the most likely break off the known path; else the last line that has seen the values."""
    events = [event for event in step.trace.events if event.sources >> i & 1]
    if event := _most_likely(events):  # `x.detach().numpy()` on one line leaves PyTorch; the `detach` is there for that
        leaves = any(e.kind == "python" and e.location == event.location for e in events)
        return "python" if leaves and event.kind in {"detach", "data"} else event.kind, event.location
    places = [place for sources, place in step.trace.calls if sources >> i & 1]
    return "python", places[-1].location


def _most_likely(events: Iterable[Event]) -> Event | None:
    breaks = (event for event in events if event.kind in BREAKS)
    return min(breaks, key=lambda event: PRIORITY.index(event.kind), default=None)


def _finding(kind: str, location: str, names: list[str], severity: Severity) -> ModelFinding:
    if kind == "unused_result":
        message, fix = "the loss does not use what is computed with them", "use the result, or remove the layer"
    else:
        message, fix = BREAKS[kind]
    message = f"the loss does not reach these parameters: {message}"
    return ModelFinding(kind, message, fix, tuple(names), location, severity)
