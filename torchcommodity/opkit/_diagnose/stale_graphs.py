"""Graphs that outlive a step: state that is stored with its graph, and what was computed once, in the constructor."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import nn

from torchcommodity.opkit._diagnose.findings import Finding
from torchcommodity.opkit._diagnose.source import assignment, state_assignment
from torchcommodity.opkit._diagnose.step import Step
from torchcommodity.opkit._diagnose.values import attributes, tensors_in

FIX_STATE = "detach what is kept from step to step: self.state = state.detach()"
FIX_ONCE = "keep the nn.Parameter as an attribute, and compute with it in the forward pass"


class StoredGraph(NamedTuple):
    """A Tensor with a graph, in an attribute of a module."""

    module: nn.Module
    path: str
    attribute: str
    node: Any


def stored_graphs(model: nn.Module) -> list[StoredGraph]:
    """Tensors with a graph in the attributes and buffers of a model."""
    return [
        StoredGraph(module, f"{name}.{attribute}".lstrip("."), attribute, x.grad_fn)
        for name, module in model.named_modules()
        for attribute, value in attributes(module).items()
        for x in tensors_in(value)
        if x.grad_fn is not None
    ]


def computed_once(stored: Sequence[StoredGraph], step: Step) -> list[Finding]:
    """Attributes that were computed before the first step, and are used in it: no step will change them."""
    message = "computed once, before the first step, from what requires a gradient: no optimizer will change it"
    return [
        Finding("not_a_parameter", message, FIX_ONCE, (graph.path,), assignment(graph.module, graph.attribute))
        for graph in stored
        if graph.node in step.flow.nodes
    ]


def stale_graph(stored: Sequence[StoredGraph], first: Step, second: Step) -> list[Finding]:
    """A finding if the graph of the second step contains nodes of the first."""
    nodes = second.flow.nodes
    old = {node for node in nodes if node in first.trace.nodes}
    if not old:
        return []
    state = next((graph for graph in stored if graph.node in old), None)
    message = "the graph of the previous step is still in use, and its backward pass has freed it"
    if state:
        location = state_assignment(state.module, state.attribute)
        return [Finding("graph_kept", message, FIX_STATE, (state.path,), location)]
    users = (node for node in nodes if node not in old and any(f in old for f, _ in node.next_functions))
    return [Finding("graph_kept", message, FIX_STATE, (), next((nodes[u].location for u in users), ""))]
