"""One backward pass, with a hook on every node of the graph: where gradients become zero, or not finite."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import Node

from torch_opkit._diagnose.findings import ModelFinding
from torch_opkit._diagnose.locations import Place
from torch_opkit._diagnose.source import attribute_line, class_place
from torch_opkit._diagnose.trace import Call, Trace
from torch_opkit._diagnose.values import dense, is_finite

Gradients = tuple[Tensor | None, ...]
INTERMEDIATE = "is a result that forward keeps without its graph, so the gradient of a gradient lacks its part"
FIX_INTERMEDIATE = (
    "save inputs or outputs with ctx.save_for_backward, and recompute the result from them in backward; or return it "
    "as one more output, and save that"
)
MISSING, EMPTY, ZERO, NONZERO, HOOKED = "missing", "empty", "zero", "nonzero", "hooked"


@dataclass
class Edge:
    """A gradient that a node passes on to another: where its chain ends, if the node has received one."""

    node: Node
    place: Place
    state: str  # missing, empty, zero, or hooked: zeroed between the nodes, by a hook


@dataclass
class Flow:
    """States of the gradients that each node has received and passed on."""

    nodes: dict[Node, Place] = field(default_factory=dict)
    received: dict[Node, str] = field(default_factory=dict)
    passed: dict[Node, list[str]] = field(default_factory=dict)
    not_finite: list[Place] = field(default_factory=list)
    running: Place = field(default_factory=Place)  # of the last node that has started: the one that raised, if one did

    @cached_property
    def leaves(self) -> dict[int, Node]:
        """Leaf (by id) -> its node."""
        return {id(node.variable): node for node in self.nodes if hasattr(node, "variable")}

    def start(self, node: Node, _: Gradients) -> None:
        """Hook before a node."""
        self.running = self.nodes[node]

    def record(self, node: Node, grad_inputs: Gradients, grad_outputs: Gradients) -> None:
        """Hook after a node."""
        self.received[node] = NONZERO if NONZERO in map(_state, grad_outputs) else ZERO
        self.passed[node] = [_state(g) for g in grad_inputs]
        if _all_finite(grad_outputs) and not _all_finite(grad_inputs):
            self.not_finite.append(self.nodes[node])

    def cuts(self, leaf: Node) -> list[Edge]:
        """Edges toward a leaf whose node has received a gradient and passed none on, first in the backward pass."""
        # the leaf and the nodes on the way to it, up to those with a gradient: beyond, other branches may be zero
        reach, stack, hooked = {leaf}, [leaf], list[Edge]()
        while stack:
            for node in self._users.get(stack.pop(), ()):
                if node not in reach and self.received.get(node) != NONZERO:
                    reach.add(node)
                    stack.append(node)
        for node, users in self._users.items():
            if node in reach and len(users) == 1 and self.received.get(node) == ZERO:
                states = zip(users[0].next_functions, self.passed.get(users[0], ()))
                if any(state == NONZERO for (following, _), state in states if following is node):
                    hooked.append(Edge(node, self.nodes[node], HOOKED))
        return hooked + [
            Edge(node, self.nodes[node], state)
            for node, states in self.passed.items()
            if self.received.get(node) == NONZERO
            for (following, _), state in zip(node.next_functions, states)
            if following in reach and state != NONZERO
        ]

    @cached_property
    def _users(self) -> dict[Node, list[Node]]:
        users: dict[Node, list[Node]] = {}
        for node in self.nodes:
            for following, _ in node.next_functions:
                if following is not None:
                    users.setdefault(following, []).append(node)
        return users


def graph_nodes(loss: Tensor, places: Mapping[Node, tuple[Place, int]]) -> dict[Node, Place]:
    """Nodes of the graph of a loss. One that no torch function returned has the place of what uses it."""
    nodes: dict[Node, Place] = {}
    stack: list[tuple[Node | None, Place]] = [(loss.grad_fn, Place())]
    while stack:
        node, user = stack.pop()
        if node is None or node in nodes:
            continue
        nodes[node] = places[node][0] if node in places else class_place(node) or user
        stack += [(following, nodes[node]) for following, _ in reversed(node.next_functions)]
    return nodes


def backward(loss: Tensor, flow: Flow, scale: float = 1.0) -> None:
    """`loss.backward()`, observed. Raises what it raises."""
    handles = [node.register_hook(partial(flow.record, node)) for node in flow.nodes]
    handles += [
        node.register_prehook(partial(flow.start, node)) for node in flow.nodes if not hasattr(node, "variable")
    ]
    try:
        loss.backward(torch.full_like(loss, scale))
    finally:
        for handle in handles:
            handle.remove()


def _state(gradient: Tensor | None) -> str:
    if gradient is None:
        return MISSING
    values = dense(gradient)
    return EMPTY if not values.numel() else NONZERO if bool(values.any()) else ZERO


def _all_finite(gradients: Gradients) -> bool:
    return all(is_finite(g) for g in gradients if g is not None and g.numel())


class IntermediateObserver:
    """Observer of `torch.autograd.grad` under create_graph: results that a Function keeps without their graph.

    The gradient of the gradient then lacks the part through them. A mask, which has none, is meant to be kept.
    """

    trace: Trace  # which it observes

    def __init__(self) -> None:
        self.findings: dict[str, ModelFinding] = {}  # by location

    def __call__(self, call: Call) -> None:
        if call.name != "grad" or not any(y.requires_grad for y in call.outputs):
            return
        masks = sum(event.bit for event in self.trace.events if event.kind == "integer")
        for node in {node for x in call.tensors for node in graph_nodes(x, {})}:
            function: Any = getattr(type(node), "_forward_cls", None)
            for name, x in vars(node).items() if function else ():
                bits = self.trace.bits_of(x)
                without_graph = isinstance(x, Tensor) and x.is_floating_point() and not x.requires_grad
                if without_graph and bits & self.trace.parameter_bits and not bits & masks:
                    location = attribute_line(function, name)
                    message = f"ctx.{name} {INTERMEDIATE}"
                    finding = ModelFinding("intermediate_on_ctx", message, FIX_INTERMEDIATE, (), location)
                    self.findings.setdefault(location, finding)
