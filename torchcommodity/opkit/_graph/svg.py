"""The graph as SVG: boxes in layers, curves between them."""

from collections.abc import Sequence
from html import escape

from torchcommodity.opkit._graph.layout import Point, layout
from torchcommodity.opkit._graph.node import Edge, Node, format_bytes

COLUMN_WIDTH, LAYER_HEIGHT, BOX_WIDTH, BOX_HEIGHT = 168, 88, 152, 50
STYLE = """
.graph { font: 12px system-ui, sans-serif; background: #fff; color: #1d2733 }
.graph rect { fill: #eef3f8; stroke: #51708f } .graph .leaf rect { fill: #f7f1e1; stroke: #97741c; rx: 22 }
.graph .output rect { fill: #e3f2e6; stroke: #2f7d46; stroke-width: 2 }
.graph text { fill: currentColor; text-anchor: middle } .graph .name { font-weight: 600 }
.graph path.edge { fill: none; stroke: #7b8a99; stroke-width: 1.3 } .graph marker path { fill: #7b8a99 }
.graph.backward path.edge { stroke-dasharray: 5 3; stroke: #a8503c } .graph.backward marker path { fill: #a8503c }
.graph path.edge { marker-end: url(#to) } .graph.backward path.edge { marker-end: none; marker-start: url(#to) }
.graph .match rect { stroke: #c2185b; stroke-width: 3 } .graph .other { opacity: .25 }
"""


def to_svg(nodes: Sequence[Node], edges: Sequence[Edge], backward: bool = False) -> str:
    drawing = layout(len(nodes), edges)
    width, height = round(drawing.width * COLUMN_WIDTH), drawing.height * LAYER_HEIGHT
    curves = [f'<path class="edge" d="{_curve(path)}"/>' for path in drawing.paths]
    reading_order = sorted(zip(nodes, drawing.positions), key=lambda box: (box[1][1], box[1][0]))
    boxes = [_box(node, *position) for node, position in reading_order]
    direction = "graph backward" if backward else "graph"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{direction}" role="img" aria-label="computation graph" '
            f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"><style>{STYLE}</style>',
            '<defs><marker id="to" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z"/></marker></defs>',
            *curves,
            *boxes,
            "</svg>",
        ]
    )


def _center(column: float, layer: int) -> tuple[float, float]:
    return round((column + 0.5) * COLUMN_WIDTH, 1), (layer + 0.5) * LAYER_HEIGHT


def _curve(path: list[Point]) -> str:
    """From the bottom of a box, through the points of the path, to the top of another."""
    (x, y), *points = [_center(*point) for point in path]
    parts, y = [f"M{x} {y + BOX_HEIGHT / 2}"], y + BOX_HEIGHT / 2
    for i, (to_x, to_y) in enumerate(points):
        end = to_y - BOX_HEIGHT / 2 if i == len(points) - 1 else to_y
        middle = (y + end) / 2
        parts.append(f"C{x} {middle} {to_x} {middle} {to_x} {end}")
        x, y = to_x, end
    return "".join(parts)


def _box(node: Node, column: float, layer: int) -> str:
    x, y = _center(column, layer)
    saved = f"saves {format_bytes(node.saved_bytes)}" if node.saved_bytes else ""
    title = escape(f"{node.name}, {node.dtype} {node.shape}{', ' + saved if saved else ''}")
    lines = [("name", _shorten(node.name)), ("", _shorten(f"{node.dtype} {node.shape}")), ("", saved)]
    texts = [
        f'<text class="{style}" x="{x}" y="{y + 4 + 15 * (i - (2 if saved else 1) / 2)}">{escape(line)}</text>'
        for i, (style, line) in enumerate(lines)
        if line
    ]
    left, top = x - BOX_WIDTH / 2, y - BOX_HEIGHT / 2
    rect = f'<rect x="{left}" y="{top}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="4"/>'
    return f'<g class="{node.kind}"><title>{title}</title>{rect}{"".join(texts)}</g>'


def _shorten(text: str, length: int = 22) -> str:
    return text if len(text) <= length else f"{text[: length // 2]}…{text[-length // 2 + 1 :]}"
