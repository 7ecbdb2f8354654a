"""The computation graph: read from a result, back along `grad_fn` to everything that it was computed from."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from torch_opkit._graph.drawing import Node, format_bytes
from torch_opkit._graph.formats import to_html, to_mermaid, to_svg
from torch_opkit._graph.layout import Edge
from torch_opkit._graph.png import to_png


@dataclass(frozen=True)
class Graph:
    """A computation graph: nodes in order of computation, and an edge (i, j) where node j uses the result of node i.

    It prints as a table, and notebooks show the drawing.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    @property
    def saved_bytes(self) -> int:
        """Bytes saved for the backward pass, without parameters and other leaves."""
        return sum(node.saved_bytes for node in self.nodes)

    def mermaid(self, *, backward: bool = False) -> str:
        """Mermaid flowchart, as in a Markdown file; `backward` draws edges in the direction of the gradients."""
        return to_mermaid(self.nodes, self.edges, backward)

    def svg(self, *, backward: bool = False) -> str:
        """Self-contained SVG drawing; `backward` draws edges in the direction of the gradients."""
        return to_svg(self.nodes, self.edges, backward)

    def png(self, *, backward: bool = False, scale: float | None = None) -> bytes:
        """PNG image of the same drawing.

        Args:
            backward: draw edges in the direction of the gradients.
            scale: pixels for one of the SVG; by default 2, or what a larger drawing leaves of 89 million pixels.

        Raises:
            ImportError: Pillow is not installed: `pip install 'torch-opkit[graph]'`.
            ValueError: `scale` is not positive, or the image has too many pixels, for the default at a scale of 0.5.
        """
        return to_png(self.nodes, self.edges, backward, scale)

    def html(self) -> str:
        """Self-contained HTML page: the drawing in both directions, with zoom and search."""
        return to_html(self.nodes, self.edges)

    def save(self, path: str | Path) -> Path:
        """Write the format of the suffix: .html, .svg, .png, or .mmd for Mermaid.

        Raises:
            ImportError, ValueError: as `png`.
            ValueError: another suffix.
        """
        path = Path(path)
        formats: dict[str, Callable[[], str | bytes]] = {
            ".html": self.html,
            ".svg": self.svg,
            ".png": self.png,
            ".mmd": self.mermaid,
        }
        if path.suffix not in formats:
            raise ValueError(f"graph: the suffix must be one of {', '.join(formats)}; got {path.name}")
        content = formats[path.suffix]()
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def _repr_html_(self) -> str:
        return self.svg()

    def __str__(self) -> str:
        nodes = [node for node in self.nodes if node.kind != "output"]
        rows = [(node.name, str(node.shape), node.dtype, format_bytes(node.saved_bytes)) for node in nodes]
        rows = [("operator", "shape", "dtype", "saved"), *rows]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = ["  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[3]]) for row in rows]
        saved = f"{format_bytes(self.saved_bytes)} saved for the backward pass"
        return "\n".join([*lines, f"{len(self.nodes)} nodes, {len(self.edges)} edges; {saved}"])


def graph(output: object, *, names: torch.nn.Module | Mapping[str, Tensor] | None = None) -> Graph:
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
        >>> import torch_opkit as opkit
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
    tensors = dict(names.named_parameters()) if isinstance(names, torch.nn.Module) else {} if names is None else names
    if not isinstance(tensors, Mapping) or not all(isinstance(x, Tensor) for x in tensors.values()):
        rule = "names must be a module or a mapping from names to Tensors"
        raise TypeError(f"graph: {rule}; got {type(names).__name__}")
    leaf_names = {id(x): name for name, x in tensors.items()}
    functions = _topological_order([root.grad_fn for root in roots if root.grad_fn])
    index = {function: i for i, function in enumerate(functions)}
    edges = [(index[f], index[function]) for function in functions for f, _ in function.next_functions if f]
    shown = {id(function.variable): function.variable for function in functions if hasattr(function, "variable")}
    leaves = [*(x for x in tensors.values() if x.is_leaf), *shown.values()]
    counted = {x.untyped_storage().data_ptr() for x in leaves}  # no leaf is saved for the backward pass
    nodes = [_node(function, leaf_names, counted) for function in functions]
    for root in roots:
        if id(root) not in shown:
            edges += [(index[root.grad_fn], len(nodes))] if root.grad_fn else []
            name = leaf_names.get(id(root), "output")
            nodes.append(Node(name, "output", tuple(root.shape), _dtype(root.dtype), 0))
    return Graph(tuple(nodes), tuple(dict.fromkeys(edges)))


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


def _node(function: Any, leaf_names: Mapping[int, str], counted: set[int]) -> Node:
    """The node of a function; storages that it is the first to save are added to `counted`."""
    if hasattr(function, "variable"):
        leaf = function.variable
        return Node(leaf_names.get(id(leaf), "leaf"), "leaf", tuple(leaf.shape), _dtype(leaf.dtype), 0)
    result = next(iter(function._input_metadata), None)  # an input of the backward function has the shape of the output
    shape, dtype = (tuple(result.shape), _dtype(result.dtype)) if result else ((), "")
    saved_bytes = 0
    for x in _saved_tensors(function):
        storage = x.untyped_storage()
        if storage.data_ptr() not in counted:
            counted.add(storage.data_ptr())
            saved_bytes += storage.nbytes()
    name = function.name().rsplit("::", 1)[-1].split("Backward")[0]
    return Node(name, "operator", shape, dtype, saved_bytes)


def _saved_tensors(function: object) -> Iterator[Tensor]:
    """The Tensors that a function saves; none after the backward pass has freed them."""
    names = ["saved_tensors", *(name for name in dir(function) if name.startswith("_saved_"))]
    for name in names:
        try:
            value = getattr(function, name, None)
        except RuntimeError:
            continue
        yield from (x for x in tree_leaves(value) if isinstance(x, Tensor))


def _dtype(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
