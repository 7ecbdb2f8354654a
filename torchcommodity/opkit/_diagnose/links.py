"""Parameters that the loss does not reach, and the place where the link breaks."""

from collections import defaultdict
from collections.abc import Sequence

from torchcommodity.opkit._diagnose.findings import Finding
from torchcommodity.opkit._diagnose.trace import Event, Trace

WORDS = {
    "detach": ("`detach` takes the result out of the graph", "remove it, or detach only what is logged"),
    "data": ("`.data` gives the values without their graph", "use the Tensor itself"),
    "no_grad": ("this runs where gradients are switched off", "take it out of `torch.no_grad` or `inference_mode`"),
    "copied": (
        "`torch.tensor` copies values, without their graph",
        "use the Tensor itself, or `torch.stack` of several",
    ),
    "python": ("the value leaves PyTorch as a number or an array", "compute with the Tensor, in torch functions"),
    "integer": ("the result is an integer or a truth value, which has no gradient", "use a smooth function of it"),
    "cut": ("the result of this function has no gradient", "use a differentiable function"),
}
ORDER = ("detach", "data", "no_grad", "copied", "python", "cut", "integer")


def broken_links(trace: Trace, names: Sequence[str], missing: Sequence[int], loss_mark: int) -> list[Finding]:
    """`missing` are the parameters without a gradient, by position."""
    found = defaultdict[tuple[str, str], list[str]](list)
    for i in missing:
        event = _breaks(trace, 1 << i, loss_mark)
        if event:
            found[event.kind, event.where].append(names[i])
        elif 1 << i in trace.used:
            found["unused_result", trace.used[1 << i]].append(names[i])
    return [_finding(kind, where, what) for (kind, where), what in found.items()]


def _breaks(trace: Trace, bit: int, loss_mark: int) -> Event | None:
    """The first cut that lies between this parameter and the loss; else the first on which its values left PyTorch."""
    behind = [event for event in trace.events if event.sources & bit and event.kind in WORDS]
    on_the_way = [event for event in behind if event.mark & loss_mark]
    return min(on_the_way or behind, key=lambda event: ORDER.index(event.kind), default=None)


def _finding(kind: str, where: str, what: list[str]) -> Finding:
    if kind == "unused_result":
        message, remedy = "what is computed with it is not used by the loss", "use the result, or remove the layer"
    else:
        message, remedy = WORDS[kind]
    return Finding(kind, f"the loss does not reach these parameters: {message}", remedy, tuple(what), where)
