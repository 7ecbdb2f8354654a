"""The graph as SVG: boxes in layers, curves between them."""

from html import escape

from torchcommodity.opkit._graph.graph import Graph, Node, size
from torchcommodity.opkit._graph.layers import layout

WIDE, HIGH, BOX_WIDE, BOX_HIGH = 168, 88, 152, 50
STYLE = """
.graph { font: 12px system-ui, sans-serif; background: #fff; color: #1d2733 }
.graph rect { fill: #eef3f8; stroke: #51708f } .graph .leaf rect { fill: #f7f1e1; stroke: #97741c; rx: 22 }
.graph .output rect { fill: #e3f2e6; stroke: #2f7d46; stroke-width: 2 }
.graph text { fill: currentColor; text-anchor: middle } .graph .name { font-weight: 600 }
.graph path.edge { fill: none; stroke: #7b8a99; stroke-width: 1.3 } .graph marker path { fill: #7b8a99 }
.graph.backward path.edge { stroke-dasharray: 5 3; stroke: #a8503c } .graph.backward marker path { fill: #a8503c }
.graph path.edge { marker-end: url(#to) } .graph.backward path.edge { marker-end: none; marker-start: url(#to) }
.graph .found rect { stroke: #c2185b; stroke-width: 3 } .graph .other { opacity: .25 }
"""


def svg(graph: Graph, backward: bool = False) -> str:
    where = layout(graph)
    width, height = round(where.width * WIDE), where.height * HIGH
    edges = [f'<path class="edge" d="{_curve(way)}"/>' for way in where.ways]
    downwards = sorted(zip(graph.nodes, where.places), key=lambda box: (box[1][1], box[1][0]))
    boxes = [_box(node, *place) for node, place in downwards]
    direction = "graph backward" if backward else "graph"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{direction}" role="img" aria-label="computation graph" '
            f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"><style>{STYLE}</style>',
            '<defs><marker id="to" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z"/></marker></defs>',
            *edges,
            *boxes,
            "</svg>",
        ]
    )


def _center(column: float, layer: int) -> tuple[float, float]:
    return round((column + 0.5) * WIDE, 1), (layer + 0.5) * HIGH


def _curve(way: list[tuple[float, int]]) -> str:
    """From the foot of a box, through the points on the way, to the head of another."""
    (x, y), *rest = [_center(*point) for point in way]
    parts, y = [f"M{x} {y + BOX_HIGH / 2}"], y + BOX_HIGH / 2
    for i, (to_x, to_y) in enumerate(rest):
        end = to_y - BOX_HIGH / 2 if i == len(rest) - 1 else to_y
        middle = (y + end) / 2
        parts.append(f"C{x} {middle} {to_x} {middle} {to_x} {end}")
        x, y = to_x, end
    return "".join(parts)


def _box(node: Node, column: float, layer: int) -> str:
    x, y = _center(column, layer)
    kept = f"keeps {size(node.kept)}" if node.kept else ""
    whole = escape(f"{node.name}, {node.dtype} {node.shape}{', ' + kept if kept else ''}")
    lines = [("name", _short(node.name)), ("", _short(f"{node.dtype} {node.shape}")), ("", kept)]
    texts = [
        f'<text class="{style}" x="{x}" y="{y + 4 + 15 * (i - (2 if kept else 1) / 2)}">{escape(line)}</text>'
        for i, (style, line) in enumerate(lines)
        if line
    ]
    rect = f'<rect x="{x - BOX_WIDE / 2}" y="{y - BOX_HIGH / 2}" width="{BOX_WIDE}" height="{BOX_HIGH}" rx="4"/>'
    return f'<g class="{node.kind}"><title>{whole}</title>{rect}{"".join(texts)}</g>'


def _short(text: str, longest: int = 22) -> str:
    return text if len(text) <= longest else f"{text[: longest // 2]}…{text[-longest // 2 + 1 :]}"
