"""One page that needs nothing else: the drawing, its direction, its size, and a search by name."""

from pathlib import Path
from string import Template

from torchcommodity.opkit._graph.drawing import svg
from torchcommodity.opkit._graph.graph import Graph, size


def html(graph: Graph) -> str:
    page = Template((Path(__file__).parent / "page.html").read_text())
    facts = f"{len(graph.nodes)} nodes, {len(graph.edges)} edges, {size(graph.kept)} kept for the backward pass"
    return page.substitute(svg=svg(graph), facts=facts)
