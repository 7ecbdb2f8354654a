"""The graph as a Mermaid flowchart, as SVG, and as a self-contained HTML page with direction, zoom and search."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

from torch_opkit._graph.drawing import (
    BOX_HEIGHT,
    BOX_WIDTH,
    EDGE,
    FONT_SIZE,
    GRADIENT,
    STYLES,
    TEXT,
    Node,
    draw,
    format_bytes,
)
from torch_opkit._graph.layout import Edge

MERMAID_SHAPES = {"leaf": ("([", "])"), "operator": ("[", "]"), "output": ("[[", "]]")}
BOXES = " ".join(
    f".graph .{kind} rect {{ fill: {style.fill}; stroke: {style.stroke}; stroke-width: {style.stroke_width} }}"
    for kind, style in STYLES.items()
)
STYLE = f"""
.graph {{ font: {FONT_SIZE}px system-ui, sans-serif; background: #fff; color: {TEXT} }}
{BOXES}
.graph text {{ fill: currentColor; text-anchor: middle }} .graph .name {{ font-weight: 600 }}
.graph path.edge {{ fill: none; stroke: {EDGE}; stroke-width: 1.3 }} .graph marker path {{ fill: {EDGE} }}
.graph.backward path.edge {{ stroke-dasharray: 5 3; stroke: {GRADIENT} }}
.graph.backward marker path {{ fill: {GRADIENT} }}
.graph path.edge {{ marker-end: url(#to) }}
.graph.backward path.edge {{ marker-end: none; marker-start: url(#to) }}
.graph .match rect {{ stroke: #c2185b; stroke-width: 3 }} .graph .other {{ opacity: .25 }}
"""


def to_mermaid(nodes: Sequence[Node], edges: Sequence[Edge], backward: bool) -> str:
    limits = f'%%{{init: {{"maxTextSize": 1000000, "flowchart": {{"maxEdges": {len(edges) + 1}}}}}}}%%'
    lines = [limits, "flowchart TD"]
    for i, node in enumerate(nodes):
        left, right = MERMAID_SHAPES[node.kind]
        saved = f"<br/>saves {format_bytes(node.saved_bytes)}" if node.saved_bytes else ""
        name = node.name.replace('"', "#quot;").replace("<", "&lt;")
        lines.append(f'  n{i}{left}"{name}<br/>{node.dtype} {node.shape}{saved}"{right}')
    lines += [f"  n{b} -.-> n{a}" if backward else f"  n{a} --> n{b}" for a, b in edges]
    return "\n".join([*lines, ""])


def to_svg(nodes: Sequence[Node], edges: Sequence[Edge], backward: bool = False) -> str:
    drawing = draw(nodes, edges)
    width, height = drawing.width, drawing.height
    direction = "graph backward" if backward else "graph"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{direction}" role="img" aria-label="computation graph" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"><style>{STYLE}</style>',
        '<defs><marker id="to" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z"/></marker></defs>',
    ]
    for (x, y), *points in drawing.curves:
        path = " ".join(f"{to_x} {to_y}" for to_x, to_y in points)
        lines.append(f'<path class="edge" d="M{x} {y}C{path}"/>')
    for box in drawing.boxes:
        x, y = box.center
        left, top, radius = x - BOX_WIDTH / 2, y - BOX_HEIGHT / 2, STYLES[box.kind].radius
        texts = [
            f'<text class="{"" if i else "name"}" x="{x}" y="{baseline}">{escape(line)}</text>'
            for i, (baseline, line) in enumerate(zip(box.baselines, box.lines))
        ]
        place = f'x="{left}" y="{top}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="{radius}"'
        title = f"<title>{escape(box.title)}</title>"
        lines.append(f'<g class="{box.kind}">{title}<rect {place}/>{"".join(texts)}</g>')
    return "\n".join([*lines, "</svg>"])


def to_html(nodes: Sequence[Node], edges: Sequence[Edge]) -> str:
    page = Template((Path(__file__).parent / "page.html").read_text())
    saved = format_bytes(sum(node.saved_bytes for node in nodes))
    summary = f"{len(nodes)} nodes, {len(edges)} edges, {saved} saved for the backward pass"
    return page.substitute(svg=to_svg(nodes, edges), summary=summary)
