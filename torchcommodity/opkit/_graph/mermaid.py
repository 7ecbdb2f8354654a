"""The graph as a Mermaid flowchart."""

from collections.abc import Sequence

from torchcommodity.opkit._graph.node import Edge, Node, format_bytes

SHAPES = {"leaf": ("([", "])"), "operator": ("[", "]"), "output": ("[[", "]]")}


def to_mermaid(nodes: Sequence[Node], edges: Sequence[Edge], backward: bool) -> str:
    limits = f'%%{{init: {{"maxTextSize": 1000000, "flowchart": {{"maxEdges": {len(edges) + 1}}}}}}}%%'
    boxes = [f"  n{i}{_box(node)}" for i, node in enumerate(nodes)]
    arrows = [f"  n{b} -.-> n{a}" if backward else f"  n{a} --> n{b}" for a, b in edges]
    return "\n".join([limits, "flowchart TD", *boxes, *arrows, ""])


def _box(node: Node) -> str:
    left, right = SHAPES[node.kind]
    saved = f"<br/>saves {format_bytes(node.saved_bytes)}" if node.saved_bytes else ""
    name = node.name.replace('"', "#quot;").replace("<", "&lt;")
    return f'{left}"{name}<br/>{node.dtype} {node.shape}{saved}"{right}'
