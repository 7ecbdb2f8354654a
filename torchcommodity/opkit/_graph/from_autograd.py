"""Build the graph from a result, back along `grad_fn` to everything that it was computed from."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from torchcommodity.opkit._graph.graph import Graph
from torchcommodity.opkit._graph.node import Node


def graph(output: Any, *, names: torch.nn.Module | Mapping[str, Tensor] | None = None) -> Graph:
    """The autograd graph of `output`: operators, shapes, and the bytes that each saves for the backward pass.

    Args:
        output: a Tensor that requires a gradient, or a nested structure of them.
        names: names of leaves and outputs: a module, for its parameters, or a mapping from names to Tensors.

    Returns:
        A `Graph`, which prints as a table; `.mermaid()`, `.svg()`, `.png()` and `.save("graph.html")` draw it.

    Raises:
        TypeError: `names` is neither a module nor a mapping from names to Tensors.
        ValueError: no Tensor in `output` requires a gradient.

    Example:
        >>> import torch
        >>> from torchcommodity import opkit
        >>> model = torch.nn.Linear(3, 2)
        >>> print(opkit.graph(model(torch.ones(4, 3)).relu().sum(), names=model))
        operator  shape   dtype    saved
        bias      (2,)    float32  0 B
        weight    (2, 3)  float32  0 B
        T         (3, 2)  float32  0 B
        Addmm     (4, 2)  float32  48 B
        Relu      (4, 2)  float32  32 B
        Sum       ()      float32  0 B
        7 nodes, 6 edges; 80 B saved for the backward pass
    """
    roots = [x for x in tree_leaves(output) if isinstance(x, Tensor) and x.requires_grad]
    if not roots:
        raise ValueError(f"graph: output must require a gradient; got {type(output).__name__} without one")
    leaves = _named_tensors(names)
    leaf_names = {id(x): name for name, x in leaves.items()}
    functions = _topological_order([root.grad_fn for root in roots if root.grad_fn])
    index = {function: i for i, function in enumerate(functions)}
    counted = {x.untyped_storage().data_ptr() for x in leaves.values() if x.is_leaf} | _leaf_storages(functions)
    nodes = [_node(function, leaf_names, counted) for function in functions]
    edges = [(index[f], index[function]) for function in functions for f, _ in function.next_functions if f]
    shown = {id(function.variable) for function in functions if hasattr(function, "variable")}
    results = [root for root in roots if id(root) not in shown]
    outputs = [_output(root, leaf_names) for root in results]
    edges += [(index[root.grad_fn], len(nodes) + i) for i, root in enumerate(results) if root.grad_fn]
    return Graph((*nodes, *outputs), tuple(dict.fromkeys(edges)))


def _named_tensors(names: Any) -> dict[str, Tensor]:
    if isinstance(names, torch.nn.Module):
        return dict(names.named_parameters())
    tensors: dict[str, Any] = dict(names or {}) if isinstance(names, Mapping | None) else {"": None}
    if not all(isinstance(x, Tensor) for x in tensors.values()):
        rule = "names must be a module or a mapping from names to Tensors"
        raise TypeError(f"graph: {rule}; got {type(names).__name__}")
    return tensors


def _output(root: Tensor, names: Mapping[int, str]) -> Node:
    return Node(names.get(id(root), "output"), "output", tuple(root.shape), _dtype(root.dtype), 0)


def _topological_order(roots: list[Any]) -> list[Any]:
    """Every function after those that it depends on. Without recursion, because graphs are deep."""
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


def _node(function: Any, leaf_names: Mapping[int, str], counted: set[int]) -> Node:
    if hasattr(function, "variable"):
        leaf = function.variable
        return Node(leaf_names.get(id(leaf), "leaf"), "leaf", tuple(leaf.shape), _dtype(leaf.dtype), 0)
    result = next(iter(function._input_metadata), None)  # an input of the backward function has the shape of the output
    shape, dtype = (tuple(result.shape), _dtype(result.dtype)) if result else ((), "")
    name = function.name().rsplit("::", 1)[-1].split("Backward")[0]
    return Node(name, "operator", shape, dtype, sum(_new_bytes(x, counted) for x in _saved_tensors(function)))


def _saved_tensors(function: Any) -> Iterator[Tensor]:
    """The Tensors that a function saves; none after the backward pass has freed them."""
    names = ["saved_tensors", *(name for name in dir(function) if name.startswith("_saved_"))]
    for name in names:
        try:
            value = getattr(function, name, None)
        except RuntimeError:
            continue
        yield from (x for x in tree_leaves(value) if isinstance(x, Tensor))


def _new_bytes(x: Tensor, counted: set[int]) -> int:
    """Bytes of the storage of x, or zero if it belongs to a leaf or is counted already."""
    storage = x.untyped_storage()
    if storage.data_ptr() in counted:
        return 0
    counted.add(storage.data_ptr())
    return storage.nbytes()


def _dtype(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
