"""The computation graph, and its formats: table, Mermaid, SVG, HTML."""

from dataclasses import dataclass
from pathlib import Path

from torchcommodity.opkit._graph.html import to_html
from torchcommodity.opkit._graph.mermaid import to_mermaid
from torchcommodity.opkit._graph.node import Edge, Node, format_bytes
from torchcommodity.opkit._graph.svg import to_svg


@dataclass(frozen=True)
class Graph:
    """A computation graph: nodes in order of computation, and an edge (i, j) where node j uses the result of node i.

    It prints as a table.
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

    def html(self) -> str:
        """Self-contained HTML page: the drawing in both directions, with zoom and search."""
        return to_html(self.nodes, self.edges)

    def save(self, path: str | Path) -> Path:
        """Write the format of the suffix: .html, .svg, or .mmd for Mermaid.

        Raises:
            ValueError: another suffix.
        """
        path = Path(path)
        formats = {".html": self.html, ".svg": self.svg, ".mmd": self.mermaid}
        if path.suffix not in formats:
            raise ValueError(f"graph: the suffix must be one of {', '.join(formats)}; got {path.name}")
        path.write_text(formats[path.suffix]())
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
