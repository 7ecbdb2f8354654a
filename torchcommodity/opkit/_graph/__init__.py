"""Drawing of the computation graph: `opkit.graph(loss, names=model).save("graph.html")`."""

from torchcommodity.opkit._graph.from_autograd import graph as graph
from torchcommodity.opkit._graph.graph import Graph as Graph

__all__ = ["Graph", "graph"]
