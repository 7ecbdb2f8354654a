"""The graph as a self-contained HTML page: drawing, direction, zoom, and search by name."""

from collections.abc import Sequence
from pathlib import Path
from string import Template

from torchcommodity.opkit._graph.node import Edge, Node, format_bytes
from torchcommodity.opkit._graph.svg import to_svg


def to_html(nodes: Sequence[Node], edges: Sequence[Edge]) -> str:
    page = Template((Path(__file__).parent / "page.html").read_text())
    saved = format_bytes(sum(node.saved_bytes for node in nodes))
    summary = f"{len(nodes)} nodes, {len(edges)} edges, {saved} saved for the backward pass"
    return page.substitute(svg=to_svg(nodes, edges), summary=summary)
