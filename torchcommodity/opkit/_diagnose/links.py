"""Parameters that the loss does not reach, and the line that breaks the link."""

from collections import defaultdict
from collections.abc import Sequence

from torchcommodity.opkit._diagnose.findings import Finding
from torchcommodity.opkit._diagnose.trace import Event, Trace

BREAKS = {  # kind of event -> message, fix
    "detach": ("`detach` removes the result from the graph", "remove it, or detach only what is logged"),
    "data": ("`.data` has the values without their graph", "use the Tensor itself"),
    "no_grad": ("this line runs with gradients disabled", "move it out of `torch.no_grad` or `inference_mode`"),
    "copy": (
        "`torch.tensor` copies values without their graph",
        "use the Tensor itself, or `torch.stack` for several",
    ),
    "python": ("the value leaves PyTorch as a number or an array", "compute with Tensors and torch functions"),
    "integer": ("the result is an integer or bool, which has no gradient", "use a smooth function instead"),
    "not_differentiable": ("the result of this function has no gradient", "use a differentiable function"),
}
PRIORITY = ("detach", "data", "no_grad", "copy", "python", "not_differentiable", "integer")


def broken_links(trace: Trace, names: Sequence[str], missing: Sequence[int], loss_bits: int) -> list[Finding]:
    """Findings for parameters without a gradient; `missing` are their positions."""
    parameters = defaultdict[tuple[str, str], list[str]](list)
    for i in missing:
        event = _find_break(trace, 1 << i, loss_bits)
        if event:
            parameters[event.kind, event.location].append(names[i])
        elif 1 << i in trace.last_use:
            parameters["unused_result", trace.last_use[1 << i]].append(names[i])
    return [_finding(kind, location, group) for (kind, location), group in parameters.items()]


def _find_break(trace: Trace, bit: int, loss_bits: int) -> Event | None:
    """The most likely break between a parameter and the loss; or else any where the parameter's values are used."""
    events = [event for event in trace.events if event.sources & bit and event.kind in BREAKS]
    before_loss = [event for event in events if event.bit & loss_bits]
    return min(before_loss or events, key=lambda event: PRIORITY.index(event.kind), default=None)


def _finding(kind: str, location: str, names: list[str]) -> Finding:
    if kind == "unused_result":
        message, fix = "the loss does not use what is computed with them", "use the result, or remove the layer"
    else:
        message, fix = BREAKS[kind]
    return Finding(kind, f"the loss does not reach these parameters: {message}", fix, tuple(names), location)
