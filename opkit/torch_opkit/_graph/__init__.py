"""Drawing of the computation graph: `opkit.graph(loss, names=model).save("graph.html")`."""

from torch_opkit._graph.graph import Graph as Graph
from torch_opkit._graph.graph import graph as graph

__all__ = ["Graph", "graph"]
