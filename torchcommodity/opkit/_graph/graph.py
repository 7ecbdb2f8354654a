"""Nodes and edges, and the forms in which they can be looked at."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["leaf", "operator", "output"]


@dataclass(frozen=True)
class Node:
    """An operator, or a leaf from which the computation starts; `kept` bytes wait in it for the backward pass."""

    name: str
    kind: Kind
    shape: tuple[int, ...]
    dtype: str
    kept: int


@dataclass(frozen=True)
class Graph:
    """Nodes in an order of computation; an edge (i, j) says that node j takes what node i gives."""

    nodes: tuple[Node, ...]
    edges: tuple[tuple[int, int], ...]

    @property
    def kept(self) -> int:
        """The bytes that are kept for the backward pass, parameters and leaves aside."""
        return sum(node.kept for node in self.nodes)

    def mermaid(self, *, backward: bool = False) -> str:
        """Text that Mermaid draws, as in a Markdown file; `backward`: the way that gradients go."""
        from torchcommodity.opkit._graph.mermaid import mermaid

        return mermaid(self, backward)

    def svg(self, *, backward: bool = False) -> str:
        """A drawing that stands alone."""
        from torchcommodity.opkit._graph.drawing import svg

        return svg(self, backward)

    def html(self) -> str:
        """A page that stands alone: the drawing in both directions, to zoom and to search."""
        from torchcommodity.opkit._graph.page import html

        return html(self)

    def save(self, path: str | Path) -> Path:
        """Write the form that the suffix names: .html, .svg, or .mmd for Mermaid."""
        path = Path(path)
        forms = {".html": self.html, ".svg": self.svg, ".mmd": self.mermaid}
        if path.suffix not in forms:
            raise ValueError(f"graph: the suffix must be one of {', '.join(forms)}; got {path.name}")
        path.write_text(forms[path.suffix]())
        return path

    def _repr_html_(self) -> str:
        return self.svg()

    def __str__(self) -> str:
        head = ("operator", "shape", "dtype", "keeps")
        rows = [
            (node.name, str(node.shape), node.dtype, size(node.kept)) for node in self.nodes if node.kind != "output"
        ]
        widths = [max(len(row[i]) for row in [head, *rows]) for i in range(3)]
        lines = ["  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[3]]) for row in [head, *rows]]
        total = f"{len(self.nodes)} nodes, {len(self.edges)} edges; {size(self.kept)} are kept for the backward pass"
        return "\n".join([*lines, total])


def size(count: int) -> str:
    """Bytes in words: 512 B, 1.5 KiB, 20 MiB."""
    value, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{value:.3g} {unit}"
