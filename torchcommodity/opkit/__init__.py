"""For authors of operators: the record, the contract that checks it, and the words in which bad input is refused."""

from torchcommodity.opkit.build import BuildError as BuildError
from torchcommodity.opkit.build import extension as extension
from torchcommodity.opkit.build import load as load
from torchcommodity.opkit.build import load_inline as load_inline
from torchcommodity.opkit.cases import Bad as Bad
from torchcommodity.opkit.cases import Cases as Cases
from torchcommodity.opkit.cases import Golden as Golden
from torchcommodity.opkit.cases import Sample as Sample
from torchcommodity.opkit.check import Report as Report
from torchcommodity.opkit.check import check as check
from torchcommodity.opkit.doctor import Diagnosis as Diagnosis
from torchcommodity.opkit.doctor import Finding as Finding
from torchcommodity.opkit.doctor import diagnose as diagnose
from torchcommodity.opkit.external import external as external
from torchcommodity.opkit.graph import Graph as Graph
from torchcommodity.opkit.graph import graph as graph
from torchcommodity.opkit.logging import LoggingTensor as LoggingTensor
from torchcommodity.opkit.logging import trace as trace
from torchcommodity.opkit.metadata import MetadataTensor as MetadataTensor
from torchcommodity.opkit.new import new as new
from torchcommodity.opkit.op import OPERATORS as OPERATORS
from torchcommodity.opkit.op import Op as Op
from torchcommodity.opkit.scalar import ScalarTensor as ScalarTensor

__all__ = [
    "OPERATORS",
    "Bad",
    "BuildError",
    "Cases",
    "Diagnosis",
    "Finding",
    "Golden",
    "Graph",
    "LoggingTensor",
    "MetadataTensor",
    "Op",
    "Report",
    "Sample",
    "ScalarTensor",
    "check",
    "diagnose",
    "extension",
    "external",
    "graph",
    "load",
    "load_inline",
    "new",
    "trace",
]
