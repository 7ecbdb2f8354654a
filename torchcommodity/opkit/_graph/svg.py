"""The graph as SVG."""

from collections.abc import Sequence
from html import escape

from torchcommodity.opkit._graph.drawing import (
    BOX_HEIGHT,
    BOX_WIDTH,
    EDGE,
    FONT_SIZE,
    GRADIENT,
    STYLES,
    TEXT,
    Box,
    Pixel,
    draw,
)
from torchcommodity.opkit._graph.node import Edge, Node

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


def to_svg(nodes: Sequence[Node], edges: Sequence[Edge], backward: bool = False) -> str:
    drawing = draw(nodes, edges)
    width, height = drawing.width, drawing.height
    direction = "graph backward" if backward else "graph"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{direction}" role="img" aria-label="computation graph" '
            f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"><style>{STYLE}</style>',
            '<defs><marker id="to" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z"/></marker></defs>',
            *(f'<path class="edge" d="{_path(curve)}"/>' for curve in drawing.curves),
            *(_group(box) for box in drawing.boxes),
            "</svg>",
        ]
    )


def _path(curve: list[Pixel]) -> str:
    (x, y), *points = curve
    return f"M{x} {y}C" + " ".join(f"{x} {y}" for x, y in points)


def _group(box: Box) -> str:
    x, y = box.center
    styles = ["name"] + [""] * (len(box.lines) - 1)
    texts = [
        f'<text class="{style}" x="{x}" y="{baseline}">{escape(line)}</text>'
        for style, baseline, line in zip(styles, box.baselines, box.lines)
    ]
    left, top = x - BOX_WIDTH / 2, y - BOX_HEIGHT / 2
    place = f'x="{left}" y="{top}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="{STYLES[box.kind].radius}"'
    return f'<g class="{box.kind}"><title>{escape(box.title)}</title><rect {place}/>{"".join(texts)}</g>'
