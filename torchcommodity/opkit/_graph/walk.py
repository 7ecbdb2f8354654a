"""From a result back along `grad_fn` to everything that it was computed from."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from torchcommodity.opkit._graph.graph import Graph, Node

Names = Mapping[int, str]


def graph(output: Any, *, names: torch.nn.Module | Mapping[str, Tensor] | None = None) -> Graph:
    """The graph by which autograd will go back from `output`: operators, shapes, and what each keeps for that.

    Args:
        output: a Tensor with a gradient, or any nest of them.
        names: a module whose parameters are to be called by name, or named Tensors.

    Returns:
        a `Graph`: print it as a table, draw it with `.mermaid()` or `.svg()`, or `.save("graph.html")`.

    Raises:
        ValueError: nothing in `output` requires a gradient, so there is no graph.

    Example:
        >>> import torch
        >>> from torchcommodity import opkit
        >>> model = torch.nn.Linear(3, 2)
        >>> print(opkit.graph(model(torch.ones(4, 3)).relu().sum(), names=model))
        operator  shape   dtype    keeps
        bias      (2,)    float32  0 B
        weight    (2, 3)  float32  0 B
        T         (3, 2)  float32  0 B
        Addmm     (4, 2)  float32  48 B
        Relu      (4, 2)  float32  32 B
        Sum       ()      float32  0 B
        7 nodes, 6 edges; 80 B are kept for the backward pass
    """
    roots = [x for x in tree_leaves(output) if isinstance(x, Tensor) and x.requires_grad]
    if not roots:
        raise ValueError(f"graph: output must require a gradient; got {type(output).__name__} without one")
    given = dict(names.named_parameters()) if isinstance(names, torch.nn.Module) else dict(names or {})
    known = {id(x): name for name, x in given.items()}
    functions = _in_order([root.grad_fn for root in roots if root.grad_fn])
    place = {function: i for i, function in enumerate(functions)}
    seen = {x.untyped_storage().data_ptr() for x in given.values()} | _leaf_storages(functions)
    nodes = [_node(function, known, seen) for function in functions]
    edges = [(place[f], place[function]) for function in functions for f, _ in function.next_functions if f]
    outputs = [Node("output", "output", tuple(root.shape), _dtype(root.dtype), 0) for root in roots]
    edges += [(place[root.grad_fn], len(nodes) + i) for i, root in enumerate(roots) if root.grad_fn]
    return Graph((*nodes, *outputs), tuple(dict.fromkeys(edges)))


def _in_order(roots: list[Any]) -> list[Any]:
    """Every function after those that it depends on; without recursion, for graphs are deep."""
    order, seen = list[Any](), set[Any]()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        function, done = stack.pop()
        if done:
            order.append(function)
        elif function not in seen:
            seen.add(function)
            stack.append((function, True))
            stack += [(f, False) for f, _ in reversed(function.next_functions) if f and f not in seen]
    return order


def _leaf_storages(functions: list[Any]) -> set[int]:
    leaves = [function.variable for function in functions if hasattr(function, "variable")]
    return {leaf.untyped_storage().data_ptr() for leaf in leaves}


def _node(function: Any, names: Names, seen: set[int]) -> Node:
    if hasattr(function, "variable"):
        leaf = function.variable
        return Node(names.get(id(leaf), "leaf"), "leaf", tuple(leaf.shape), _dtype(leaf.dtype), 0)
    result = next(iter(function._input_metadata), None)  # what comes in on the way back is what went out before
    shape, dtype = (tuple(result.shape), _dtype(result.dtype)) if result else ((), "")
    name = function.name().rsplit("::", 1)[-1].split("Backward")[0]
    return Node(name, "operator", shape, dtype, sum(_new_bytes(x, seen) for x in _saved(function)))


def _saved(function: Any) -> Iterator[Tensor]:
    """The Tensors that a function keeps; none once the backward pass has freed them."""
    kept = ["saved_tensors", *(name for name in dir(function) if name.startswith("_saved_"))]
    for name in kept:
        try:
            value = getattr(function, name, None)
        except RuntimeError:
            continue
        yield from (x for x in tree_leaves(value) if isinstance(x, Tensor))


def _new_bytes(x: Tensor, seen: set[int]) -> int:
    """The memory of x, unless it is a leaf's or was counted before."""
    storage = x.untyped_storage()
    if storage.data_ptr() in seen:
        return 0
    seen.add(storage.data_ptr())
    return storage.nbytes()


def _dtype(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
