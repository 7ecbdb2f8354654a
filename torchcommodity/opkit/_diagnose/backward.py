"""One backward pass, with a hook on every node of the graph: where gradients become zero, or not finite."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from torchcommodity.opkit._diagnose.locations import Place
from torchcommodity.opkit._diagnose.source import class_place
from torchcommodity.opkit._diagnose.values import dense, is_finite

Node = Any
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

    def cuts(self, leaf: Node) -> list[Edge]:
        """Edges toward a leaf whose node has received a gradient and passed none on, first in the backward pass."""
        reach = self._without_gradient(leaf)
        hooked = [
            Edge(node, self.nodes[node], HOOKED)
            for node, of_node in self._users.items()
            if node in reach
            and len(of_node) == 1
            and self.received.get(node) == ZERO
            and self._passes(of_node[0], node)
        ]
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
                users.setdefault(following, []).append(node)
        return users

    def _without_gradient(self, leaf: Node) -> set[Node]:
        """The leaf and the nodes on the way to it, up to those with a gradient: beyond, other branches may be zero."""
        reach, stack = {leaf}, [leaf]
        while stack:
            for node in self._users.get(stack.pop(), ()):
                if node not in reach and self.received.get(node) != NONZERO:
                    reach.add(node)
                    stack.append(node)
        return reach

    def _passes(self, node: Node, following: Node) -> bool:
        """Whether a node has passed a gradient on to another that is not zero."""
        states = zip(node.next_functions, self.passed.get(node, ()))
        return any(state == NONZERO for (target, _), state in states if target is following)


def graph_nodes(loss: Tensor, places: Mapping[Node, tuple[Place, int]]) -> dict[Node, Place]:
    """Nodes of the graph of a loss. One that no torch function returned has the place of what uses it."""
    nodes, stack = dict[Node, Place](), [(loss.grad_fn, Place())]
    while stack:
        node, user = stack.pop()
        if node is None or node in nodes:
            continue
        nodes[node] = places[node][0] if node in places else class_place(node) or user
        stack += [(following, nodes[node]) for following, _ in reversed(node.next_functions)]
    return nodes


def backward(loss: Tensor, flow: Flow, scale: float = 1.0) -> None:
    """`loss.backward()`, observed. Raises what it raises."""
    handles = [node.register_hook(_hook(flow, node)) for node in flow.nodes]
    handles += [node.register_prehook(_starts(flow, node)) for node in flow.nodes if not hasattr(node, "variable")]
    try:
        loss.backward(torch.full_like(loss, scale))
    finally:
        for handle in handles:
            handle.remove()


def _starts(flow: Flow, node: Node) -> Any:
    def hook(_: tuple[Tensor | None, ...]) -> None:
        flow.running = flow.nodes[node]

    return hook


def _hook(flow: Flow, node: Node) -> Any:
    def hook(grad_inputs: tuple[Tensor | None, ...], grad_outputs: tuple[Tensor | None, ...]) -> None:
        states = [_state(g) for g in grad_outputs]
        flow.received[node] = NONZERO if NONZERO in states else ZERO
        flow.passed[node] = [_state(g) for g in grad_inputs]
        if _all_finite(grad_outputs) and not _all_finite(grad_inputs):
            flow.not_finite.append(flow.nodes[node])

    return hook


def _state(gradient: Tensor | None) -> str:
    if gradient is None:
        return MISSING
    values = dense(gradient)
    return EMPTY if not values.numel() else NONZERO if bool(values.any()) else ZERO


def _all_finite(gradients: tuple[Tensor | None, ...]) -> bool:
    return all(is_finite(g) for g in gradients if g is not None and g.numel())
