"""Layered layout of a graph with few crossings (Sugiyama, Tagawa, Toda 1981). doi:10.1109/TSMC.1981.4308636"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

SWEEPS = 8
Edge = tuple[int, int]  # node j uses the result of node i
Point = tuple[float, int]  # (column, layer)


@dataclass(frozen=True)
class GraphLayout:
    """Position of each node, and the points on the path of each edge."""

    positions: list[Point]
    paths: list[list[Point]]
    width: float
    height: int


def layout(num_nodes: int, edges: Sequence[Edge]) -> GraphLayout:
    # Each node goes just above its first user, so that parameters are beside the operators that use them.
    height = [0] * num_nodes
    for a, b in sorted(edges, key=lambda edge: -edge[0]):
        height[a] = max(height[a], height[b] + 1)
    layers, paths = [max(height) - h for h in height], list[list[int]]()
    # An edge over several layers gets a point in each, so that no box is drawn on it.
    for a, b in edges:
        between = range(layers[a] + 1, layers[b])
        paths.append([a, *range(len(layers), len(layers) + len(between)), b])
        layers.extend(between)
    columns = _assign_columns(layers, [segment for path in paths for segment in pairwise(path)])
    points = list(zip(columns, layers))
    through = [[points[i] for i in path] for path in paths]
    return GraphLayout(points[:num_nodes], through, max(columns) + 1, max(layers) + 1)


def _assign_columns(layers: list[int], segments: list[Edge]) -> list[float]:
    """Sweep down and up alternately, and sort each layer by the mean column of its neighbors."""
    rows = defaultdict[int, list[int]](list)
    for i, layer in enumerate(layers):
        rows[layer].append(i)
    above, below = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for a, b in segments:
        above[b].append(a)
        below[a].append(b)
    width = max(len(row) for row in rows.values())
    columns = [0.0] * len(layers)
    for row in rows.values():
        for position, i in enumerate(row):
            columns[i] = position + (width - len(row)) / 2
    for sweep in range(SWEEPS):
        upwards = bool(sweep % 2)
        neighbors = below if upwards else above
        for layer in sorted(rows, reverse=upwards):
            target = {i: columns[i] for i in rows[layer]}
            for i in rows[layer]:
                if near := [columns[j] for j in neighbors[i]]:
                    target[i] = sum(near) / len(near)
            rows[layer].sort(key=target.__getitem__)
            _place_row(rows[layer], target, columns)
    leftmost = min(columns)
    return [column - leftmost for column in columns]


def _place_row(row: list[int], target: dict[int, float], columns: list[float]) -> None:
    """Place a row in order, at least one column apart, near the targets, and center it on them."""
    column = -float("inf")
    for i in row:
        column = max(target[i], column + 1)
        columns[i] = column
    shift = sum(target[i] - columns[i] for i in row) / len(row)
    for i in row:
        columns[i] += shift
