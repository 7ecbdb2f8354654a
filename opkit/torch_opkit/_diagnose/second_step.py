"""What only a second step shows: the graph of the first, parameters made in a step, updates that are undone."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node
from torch.utils._pytree import tree_leaves

from torch_opkit._diagnose.failures import explain
from torch_opkit._diagnose.findings import ModelFinding
from torch_opkit._diagnose.links import BREAKS
from torch_opkit._diagnose.source import assignment, call_line, replacement, state_assignment
from torch_opkit._diagnose.step import Problem, TrainingStep
from torch_opkit._diagnose.values import attributes, is_zero, tensors_in

FIX_STATE = "detach what is kept from step to step: self.state = state.detach()"
FIX_ONCE = "keep the nn.Parameter as an attribute, and compute with it in the forward pass"
NEW = "a parameter is made in the forward pass, after the optimizer was given the model's parameters"
FROZEN = "the forward pass replaces the parameter by one that does not require a gradient"
FOREIGN = "a Tensor with requires_grad from outside of the model, which its optimizer does not see"


class StoredGraph(NamedTuple):
    """A Tensor with a graph, in an attribute of a module."""

    module: nn.Module
    path: str
    attribute: str
    node: Node


def stored_graphs(model: nn.Module) -> list[StoredGraph]:
    """Tensors with a graph in the attributes and buffers of a model."""
    return [
        StoredGraph(module, f"{name}.{attribute}".lstrip("."), attribute, x.grad_fn)
        for name, module in model.named_modules()
        for attribute, value in attributes(module).items()
        for x in tensors_in(value)
        if x.grad_fn is not None
    ]


def computed_once(stored: Sequence[StoredGraph], step: TrainingStep) -> list[ModelFinding]:
    """Attributes that were computed before the first step, and are used in it: no step will change them."""
    message = "computed once, before the first step, from what requires a gradient: no optimizer will change it"
    return [
        ModelFinding("not_a_parameter", message, FIX_ONCE, (graph.path,), assignment(graph.module, graph.attribute))
        for graph in stored
        if graph.node in step.flow.nodes
    ]


def second_step(problem: Problem, first: TrainingStep) -> list[ModelFinding]:
    """Findings of a second step, which is taken here."""
    stored, old = stored_graphs(problem.model), {name: p.detach().clone() for name, p in problem.parameters.items()}
    problem.descend(first.gradients)
    second = problem.step(keep_gradients=True)  # an optimizer inside of the loss function has something to do
    findings = _stale_graph(stored, first, second) or ([explain(second)] if second.error else [])
    findings += _replaced(problem)
    return findings + _foreign_leaves(problem, first, second) + _overwritten(problem, old, first)


def _replaced(problem: Problem) -> list[ModelFinding]:
    """Parameters that the forward pass replaces by others that are not learned."""
    findings = []
    for name, parameter in problem.parameters.items():
        owner, _, attribute = name.rpartition(".")
        new = problem.model.get_submodule(owner)._parameters.get(attribute)
        if new is not None and new is not parameter and not new.requires_grad:
            parent, _, layer = owner.rpartition(".")
            line = replacement(problem.model.get_submodule(parent), layer, attribute, on_purpose=True)
            findings.append(ModelFinding("new_parameter", FROZEN, "make it in __init__", (name,), line))
    return findings


def _stale_graph(stored: Sequence[StoredGraph], first: TrainingStep, second: TrainingStep) -> list[ModelFinding]:
    """A finding if the graph of the second step contains nodes of the first."""
    nodes = second.flow.nodes
    old = {node for node in nodes if node in first.trace.nodes}
    if not old:
        return []
    state = next((graph for graph in stored if graph.node in old), None)
    message = "the graph of the previous step is still in use, and its backward pass has freed it"
    if state:
        location = state_assignment(state.module, state.attribute)
        return [ModelFinding("graph_kept", message, FIX_STATE, (state.path,), location)]
    users = (node for node in nodes if node not in old and any(f in old for f, _ in node.next_functions))
    return [ModelFinding("graph_kept", message, FIX_STATE, (), next((nodes[u].location for u in users), ""))]


def _foreign_leaves(problem: Problem, first: TrainingStep, second: TrainingStep) -> list[ModelFinding]:
    """Parameters made in the forward pass, and leaves that belong to no module of the model."""
    # what `unregistered` has reported: attributes of the model, and of layers in plain containers
    values = [leaf for module in problem.model.modules() for leaf in tree_leaves(attributes(module))]
    layers = [p for value in values if isinstance(value, nn.Module) for p in value.parameters()]
    reported, findings = {id(x) for x in (*values, *layers)}, dict[str, ModelFinding]()
    for leaf, place in first.trace.leaves:
        registered = any(leaf is p for p in problem.model.parameters())
        persistent = registered or any(leaf is other for other, _ in second.trace.leaves)
        if id(leaf) in reported or (not persistent and not isinstance(leaf, nn.Parameter)):
            continue
        if registered or not persistent:
            location = call_line(place.code, "Parameter") or place.location
            finding = ModelFinding("new_parameter", NEW, "make it in __init__", (), location)
        else:
            fix = "make it an nn.Parameter, or a layer, of the model"
            finding = ModelFinding("not_a_parameter", FOREIGN, fix, (), place.location)
        findings.setdefault(finding.location, finding)
    return list(findings.values())


def _overwritten(problem: Problem, old: Mapping[str, Tensor], first: TrainingStep) -> list[ModelFinding]:
    """Parameters that the forward pass sets back to what they were before an update."""
    findings = []
    for i, (name, parameter) in enumerate(problem.parameters.items()):
        gradient = first.gradients[name]
        if gradient is None or is_zero(gradient) or not torch.equal(parameter, old[name]):
            continue
        writes = [
            e for e in first.trace.events if e.kind in BREAKS and e.shape == parameter.shape and e.sources >> i & 1
        ]
        if writes and _is_reset(problem, parameter, old[name]):
            message = "the forward pass sets the parameter to a value of its own, which undoes every update"
            fix = "remove the assignment"
            findings.append(ModelFinding(writes[-1].kind, message, fix, (name,), writes[-1].location))
    return findings


def _is_reset(problem: Problem, parameter: Tensor, old: Tensor) -> bool:
    """Whether a forward pass undoes changes in both directions; a clamp undoes one at the most."""
    size = 0.1 * old.abs().max().clamp(min=0.1)
    undone = []
    for change in (size, -size):
        parameter.data.copy_(old + change)
        problem.loss_values()
        undone.append(torch.equal(parameter, old))
    parameter.data.copy_(old)
    return all(undone)
