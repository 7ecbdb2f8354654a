"""The graph as Mermaid's flowchart."""

from torchcommodity.opkit._graph.graph import Graph, Node, size

SHAPES = {"leaf": ("([", "])"), "operator": ("[", "]"), "output": ("[[", "]]")}


def mermaid(graph: Graph, backward: bool) -> str:
    limit = f'%%{{init: {{"maxTextSize": 1000000, "flowchart": {{"maxEdges": {len(graph.edges) + 1}}}}}}}%%'
    nodes = [f"  n{i}{_boxed(node)}" for i, node in enumerate(graph.nodes)]
    arrows = [f"  n{b} -.-> n{a}" if backward else f"  n{a} --> n{b}" for a, b in graph.edges]
    return "\n".join([limit, "flowchart TD", *nodes, *arrows, ""])


def _boxed(node: Node) -> str:
    left, right = SHAPES[node.kind]
    kept = f"<br/>keeps {size(node.kept)}" if node.kept else ""
    name = node.name.replace('"', "#quot;").replace("<", "&lt;")
    return f'{left}"{name}<br/>{node.dtype} {node.shape}{kept}"{right}'
