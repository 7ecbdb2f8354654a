"""Drawing of the computation graph: `opkit.graph(loss, names=model).save("graph.html")`."""

from torchcommodity.opkit._graph.graph import Graph as Graph
from torchcommodity.opkit._graph.graph import graph as graph

__all__ = ["Graph", "graph"]
