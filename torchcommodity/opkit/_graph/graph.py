"""The computation graph, and its formats: table, Mermaid, SVG, PNG, HTML."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torchcommodity.opkit._graph.html import to_html
from torchcommodity.opkit._graph.mermaid import to_mermaid
from torchcommodity.opkit._graph.node import Edge, Node, format_bytes
from torchcommodity.opkit._graph.png import to_png
from torchcommodity.opkit._graph.svg import to_svg


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
            ImportError: Pillow is not installed: `pip install 'torchcommodity[graph]'`.
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
