"""The graph as PNG, by Pillow: it has a typeface of its own, so that text is legible on machines without fonts."""

from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import pairwise
from math import ceil, dist, floor
from typing import TYPE_CHECKING

from torch_opkit._graph.drawing import (
    BOX_HEIGHT,
    BOX_WIDTH,
    EDGE,
    FONT_SIZE,
    GRADIENT,
    STYLES,
    TEXT,
    Box,
    Drawing,
    Node,
    Pixel,
    draw,
)
from torch_opkit._graph.layout import Edge

if TYPE_CHECKING:
    from PIL.Image import Image as Picture
    from PIL.ImageDraw import ImageDraw as Canvas

DEFAULT_SCALE, SMALLEST_LEGIBLE = 2.0, 0.5
MAX_PIXELS = 89_478_485  # above which Pillow warns of a decompression bomb on reading
SUPERSAMPLING = 2  # Pillow draws lines without antialiasing
STRIP = 1024  # pixels: a supersampled image of the whole would take four times its memory
EDGE_WIDTH, DASH, GAP, ARROW = 1.3, 5.0, 3.0, 9.0  # as the SVG: its arrow is 7 strokes


def to_png(nodes: Sequence[Node], edges: Sequence[Edge], backward: bool, scale: float | None) -> bytes:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("graph.png needs Pillow: pip install 'torch-opkit[graph]'") from error
    drawing = draw(nodes, edges)
    scale = _scale(drawing, scale)
    width, height = ceil(drawing.width * scale), ceil(drawing.height * scale)
    image = Image.new("RGB", (width, height))
    for top in range(0, height, STRIP):
        image.paste(_strip(drawing, backward, scale, (width, min(STRIP, height - top)), top / scale), (0, top))
    file = BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def _scale(drawing: Drawing, scale: float | None) -> float:
    largest = floor(100 * (MAX_PIXELS / (drawing.width * drawing.height)) ** 0.5) / 100
    if scale is not None and not scale > 0:  # NaN too
        raise ValueError(f"graph.png: scale must be > 0; got {scale}")
    if (SMALLEST_LEGIBLE if scale is None else scale) > largest:
        size = f"got a drawing of {drawing.width} x {drawing.height} pixels at scale={scale}"
        remedy = f"pass scale={largest}, or save .svg or .html, which stay sharp"
        raise ValueError(f"graph.png: the image must have at most {MAX_PIXELS:,} pixels; {size}; {remedy}")
    return min(DEFAULT_SCALE, largest) if scale is None else scale


def _strip(drawing: Drawing, backward: bool, scale: float, size: tuple[int, int], top: float) -> "Picture":
    """Rows of the image from `top`, drawn larger and reduced."""
    from PIL import Image, ImageDraw

    factor = scale * SUPERSAMPLING
    image = Image.new("RGB", (size[0] * SUPERSAMPLING, size[1] * SUPERSAMPLING), "white")
    canvas, bottom = ImageDraw.Draw(image), top + size[1] / scale
    color, width = (GRADIENT if backward else EDGE), round(EDGE_WIDTH * factor)
    for curve in drawing.curves:
        if curve[0][1] <= bottom and curve[-1][1] >= top:
            points = [(factor * x, factor * (y - top)) for x, y in _flatten(curve)]
            for line in _dashes(points, factor) if backward else [points]:
                canvas.line(line, color, width, joint="curve")
            (x, y), length = points[0 if backward else -1], (ARROW if backward else -ARROW) * factor
            canvas.polygon(
                [(x, y), (x - length / 2, y + length), (x + length / 2, y + length)], color
            )  # ends vertically
    for box in drawing.boxes:
        if abs(box.center[1] - (top + bottom) / 2) <= (bottom - top + BOX_HEIGHT) / 2 + 2:
            _draw_box(canvas, box, top, factor)
    return image.reduce(SUPERSAMPLING)


def _flatten(curve: list[Pixel], steps: int = 16) -> list[Pixel]:
    """Points on the Bezier curves."""
    points = curve[:1]
    for i in range(0, len(curve) - 1, 3):
        corners = curve[i : i + 4]
        for t in (step / steps for step in range(1, steps + 1)):
            weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
            x, y = (sum(w * corner[axis] for w, corner in zip(weights, corners)) for axis in (0, 1))
            points.append((x, y))
    return points


def _dashes(points: list[Pixel], factor: float) -> Iterator[list[Pixel]]:
    """Dashes along a line, each straight: they are shorter than its bends."""
    position, ends = 0.0, [0.0, DASH * factor]
    start: Pixel | None = points[0]
    for a, b in pairwise(points):
        length = dist(a, b)
        while length and ends[-1] <= position + length:
            share = (ends[-1] - position) / length
            point = (a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1]))
            if start:
                yield [start, point]
            start = None if start else point
            ends.append(ends[-1] + (DASH if start else GAP) * factor)
        position += length
    if start:
        yield [start, points[-1]]


def _draw_box(canvas: "Canvas", box: Box, top: float, factor: float) -> None:
    from PIL import ImageFont

    style, (x, y) = STYLES[box.kind], (box.center[0], box.center[1] - top)
    half = style.stroke_width / 2  # SVG centers a stroke on the border, Pillow draws it inside
    corners = [
        (factor * (x + side * (BOX_WIDTH / 2 + half)), factor * (y + side * (BOX_HEIGHT / 2 + half)))
        for side in (-1, 1)
    ]
    stroke = round(style.stroke_width * factor)
    canvas.rounded_rectangle(corners, factor * (style.radius + half), style.fill, style.stroke, stroke)
    font = ImageFont.load_default(max(1.0, FONT_SIZE * factor))
    for i, (baseline, line) in enumerate(zip(box.baselines, box.lines)):
        bold = max(1, round(factor / 4)) if i == 0 else 0
        place = (factor * x, factor * (baseline - top))
        canvas.text(place, line, TEXT, font, anchor="ms", stroke_width=bold)
