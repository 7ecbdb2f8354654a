"""Nodes of a computation graph, and their drawing: boxes in layers and curves between them, for SVG and PNG alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from torch_opkit._graph.layout import Edge, Point, layout

COLUMN_WIDTH, LAYER_HEIGHT, BOX_WIDTH, BOX_HEIGHT = 168, 88, 152, 50
FONT_SIZE, LINE_HEIGHT = 12, 15
TEXT, EDGE, GRADIENT = "#1d2733", "#7b8a99", "#a8503c"
Kind = Literal["leaf", "operator", "output"]
Pixel = tuple[float, float]


@dataclass(frozen=True)
class Node:
    """An operator, a leaf of the graph or an output, with the bytes that it saves for the backward pass."""

    name: str
    kind: Kind
    shape: tuple[int, ...]
    dtype: str
    saved_bytes: int


def format_bytes(count: int) -> str:
    """Bytes with a binary unit: 512 B, 1.5 KiB, 20 MiB."""
    value, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{value:.3g} {unit}"


class Style(NamedTuple):
    """Look of a box."""

    fill: str
    stroke: str
    stroke_width: int
    radius: int


STYLES: dict[Kind, Style] = {
    "operator": Style("#eef3f8", "#51708f", 1, 4),
    "leaf": Style("#f7f1e1", "#97741c", 1, 22),
    "output": Style("#e3f2e6", "#2f7d46", 2, 4),
}


@dataclass(frozen=True)
class Box:
    """A node at its center, with the lines of its text (name; dtype and shape; saved bytes) and a title in full."""

    kind: Kind
    center: Pixel
    lines: tuple[str, ...]
    title: str

    @property
    def baselines(self) -> list[float]:
        """Height of each line of the text."""
        first = self.center[1] + 4 - LINE_HEIGHT * (len(self.lines) - 1) / 2
        return [first + LINE_HEIGHT * i for i in range(len(self.lines))]


@dataclass(frozen=True)
class Drawing:
    """Boxes in reading order, and for each edge a start and cubic Bezier curves of three more points each."""

    width: int
    height: int
    boxes: list[Box]
    curves: list[list[Pixel]]


def draw(nodes: Sequence[Node], edges: Sequence[Edge]) -> Drawing:
    plan, boxes = layout(len(nodes), edges), list[Box]()
    reading_order = sorted(zip(nodes, plan.positions), key=lambda box: (box[1][1], box[1][0]))
    for node, position in reading_order:
        form, saved = (
            f"{node.dtype} {node.shape}",
            f"saves {format_bytes(node.saved_bytes)}" if node.saved_bytes else "",
        )
        lines = tuple(filter(None, [_shorten(node.name), _shorten(form), saved]))
        title = ", ".join(filter(None, [node.name, form, saved]))
        boxes.append(Box(node.kind, _center(position), lines, title))
    width, height = round(plan.width * COLUMN_WIDTH), plan.height * LAYER_HEIGHT
    return Drawing(width, height, boxes, [_curve(path) for path in plan.paths])


def _center(point: Point) -> Pixel:
    column, layer = point
    return round((column + 0.5) * COLUMN_WIDTH, 1), (layer + 0.5) * LAYER_HEIGHT


def _curve(path: list[Point]) -> list[Pixel]:
    """From the bottom of a box, through the points of the path, to the top of another."""
    centers = [_center(point) for point in path]
    (x, y), (end_x, end_y) = centers[0], centers[-1]
    through = [(x, y + BOX_HEIGHT / 2), *centers[1:-1], (end_x, end_y - BOX_HEIGHT / 2)]
    points = through[:1]
    for (x, y), (to_x, to_y) in pairwise(through):
        points += [(x, (y + to_y) / 2), (to_x, (y + to_y) / 2), (to_x, to_y)]
    return points


def _shorten(text: str, length: int = 22) -> str:
    return text if len(text) <= length else f"{text[: length // 2]}…{text[-length // 2 + 1 :]}"
