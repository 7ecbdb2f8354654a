"""Where each node stands: in layers, in an order with few crossings (Sugiyama, Tagawa, Toda 1981).

doi:10.1109/TSMC.1981.4308636
"""

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise

from torchcommodity.opkit._graph.graph import Graph

Edges = list[tuple[int, int]]
SWEEPS = 8


@dataclass(frozen=True)
class Layout:
    """(column, layer) of each node, and for each edge the points that it passes."""

    places: list[tuple[float, int]]
    ways: list[list[tuple[float, int]]]
    width: float
    height: int


def layout(graph: Graph) -> Layout:
    layer = _layers(graph)
    ways, layer = _with_waypoints(graph.edges, layer)
    steps = [step for way in ways for step in pairwise(way)]
    column = _ordered(layer, steps)
    places = [(column[i], layer[i]) for i in range(len(layer))]
    points = [[places[i] for i in way] for way in ways]
    return Layout(places[: len(graph.nodes)], points, max(column) + 1, max(layer) + 1)


def _layers(graph: Graph) -> list[int]:
    """Each just above the first that takes from it, so that parameters stand beside the operators that they enter."""
    depth = [0] * len(graph.nodes)
    for a, b in sorted(graph.edges, key=lambda edge: -edge[0]):
        depth[a] = max(depth[a], depth[b] + 1)
    return [max(depth) - below for below in depth]


def _with_waypoints(edges: tuple[tuple[int, int], ...], layer: list[int]) -> tuple[list[list[int]], list[int]]:
    """An edge over several layers gets a point in each, so that nothing is drawn across it."""
    layer, ways = list(layer), list[list[int]]()
    for a, b in edges:
        between = range(layer[a] + 1, layer[b])
        ways.append([a, *range(len(layer), len(layer) + len(between)), b])
        layer.extend(between)
    return ways, layer


def _ordered(layer: list[int], steps: Edges) -> list[float]:
    """Columns: by turns downwards and upwards, each layer sorted by the mean place of its neighbors."""
    rows = defaultdict[int, list[int]](list)
    for i, number in enumerate(layer):
        rows[number].append(i)
    above, below = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for a, b in steps:
        above[b].append(a)
        below[a].append(b)
    widest = max(len(row) for row in rows.values())
    column = [0.0] * len(layer)
    for row in rows.values():
        _spread(row, column, widest)
    for sweep in range(SWEEPS):
        neighbors = below if sweep % 2 else above
        for number in sorted(rows, reverse=bool(sweep % 2)):
            pull = {i: _mean([column[j] for j in neighbors[i]], column[i]) for i in rows[number]}
            rows[number].sort(key=pull.__getitem__)
            _place(rows[number], pull, column)
    lowest = min(column)
    return [x - lowest for x in column]


def _spread(row: list[int], column: list[float], widest: int) -> None:
    for place, i in enumerate(row):
        column[i] = place + (widest - len(row)) / 2


def _place(row: list[int], pull: dict[int, float], column: list[float]) -> None:
    """As near as may be to where each is pulled, in order, and one column apart; the whole is then centered on that."""
    at = -float("inf")
    for i in row:
        at = max(pull[i], at + 1)
        column[i] = at
    shift = sum(pull[i] - column[i] for i in row) / len(row)
    for i in row:
        column[i] += shift


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
