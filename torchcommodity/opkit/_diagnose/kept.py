"""Graphs that outlive a step: state that is kept with its graph, and what was computed once, in the constructor."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from torch import Tensor, nn

from torchcommodity.opkit._diagnose.backward import graph_nodes
from torchcommodity.opkit._diagnose.findings import Finding
from torchcommodity.opkit._diagnose.source import assignment, state_assignment
from torchcommodity.opkit._diagnose.step import Step, scalar_loss
from torchcommodity.opkit._diagnose.values import tensors_in

FIX_STATE = "detach what is kept from step to step: self.state = state.detach()"
FIX_ONCE = "keep the nn.Parameter as an attribute, and compute with it in the forward pass"


class Kept(NamedTuple):
    """A Tensor with a graph, in an attribute of a module."""

    module: nn.Module
    path: str
    attribute: str
    node: Any


def kept_graphs(model: nn.Module) -> list[Kept]:
    """Tensors with a graph in the attributes and buffers of a model."""
    return [
        Kept(module, f"{name}.{attribute}".lstrip("."), attribute, x.grad_fn)
        for name, module in model.named_modules()
        for attribute, x in _attributes(module)
        if x.grad_fn is not None
    ]


def computed_once(kept: Sequence[Kept], step: Step) -> list[Finding]:
    """Attributes that were computed before the first step, and are used in it: no step will change them."""
    nodes, findings = _nodes(step), []
    for attribute in (attribute for attribute in kept if attribute.node in nodes):
        message = "computed once, before the first step, from what requires a gradient: no optimizer will change it"
        location = assignment(attribute.module, attribute.attribute)
        findings.append(Finding("not_a_parameter", message, FIX_ONCE, (attribute.path,), location))
    return findings


def kept_from_first(kept: Sequence[Kept], first: Step, second: Step) -> list[Finding]:
    """A finding if the graph of the second step contains nodes of the first."""
    nodes = _nodes(second)
    old = {node for node in nodes if node in first.trace.nodes}
    if not old:
        return []
    state = next((attribute for attribute in kept if attribute.node in old), None)
    message = "the graph of the previous step is still in use, and its backward pass has freed it"
    if state:
        location = state_assignment(state.module, state.attribute)
        return [Finding("graph_kept", message, FIX_STATE, (state.path,), location)]
    users = (node for node in nodes if node not in old and any(f in old for f, _ in node.next_functions))
    return [Finding("graph_kept", message, FIX_STATE, (), next((nodes[u].location for u in users), ""))]


def _nodes(step: Step) -> dict[Any, Any]:
    loss = scalar_loss(step.loss)
    return graph_nodes(loss, step.trace.nodes) if loss is not None else {}


def _attributes(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    for name, value in {**vars(module), **module._buffers}.items():
        if name not in {"_parameters", "_buffers", "_modules"}:
            yield from ((name, x) for x in tensors_in(value))
