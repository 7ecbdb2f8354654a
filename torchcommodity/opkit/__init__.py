"""Tools for authors of operators: records, the contract, native builds, diagnosis of models, tensor types."""

from torchcommodity.opkit._autograd import vjp as vjp
from torchcommodity.opkit._build.compiler import BuildError as BuildError
from torchcommodity.opkit._build.extension import extension as extension
from torchcommodity.opkit._build.load import load as load
from torchcommodity.opkit._build.load import load_inline as load_inline
from torchcommodity.opkit._cases import Bad as Bad
from torchcommodity.opkit._cases import Cases as Cases
from torchcommodity.opkit._cases import Golden as Golden
from torchcommodity.opkit._cases import Sample as Sample
from torchcommodity.opkit._contract.checks import CHECKS as CHECKS
from torchcommodity.opkit._contract.report import Report as Report
from torchcommodity.opkit._contract.report import Result as Result
from torchcommodity.opkit._contract.runner import check as check
from torchcommodity.opkit._diagnose.diagnose import diagnose as diagnose
from torchcommodity.opkit._diagnose.findings import Diagnosis as Diagnosis
from torchcommodity.opkit._diagnose.findings import ModelFinding as ModelFinding
from torchcommodity.opkit._external import external as external
from torchcommodity.opkit._graph.graph import Graph as Graph
from torchcommodity.opkit._graph.graph import graph as graph
from torchcommodity.opkit._implements import dispatch as dispatch
from torchcommodity.opkit._implements import implements as implements
from torchcommodity.opkit._live import LiveFunction as LiveFunction
from torchcommodity.opkit._live import Past as Past
from torchcommodity.opkit._live import decode_text as decode_text
from torchcommodity.opkit._live import encode_text as encode_text
from torchcommodity.opkit._live import live as live
from torchcommodity.opkit._logging import LoggingTensor as LoggingTensor
from torchcommodity.opkit._logging import trace as trace
from torchcommodity.opkit._metadata import MetadataTensor as MetadataTensor
from torchcommodity.opkit._native import has_kernel as has_kernel
from torchcommodity.opkit._native import load_native_library as load_native_library
from torchcommodity.opkit._native import native_libraries as native_libraries
from torchcommodity.opkit._new import new as new
from torchcommodity.opkit._op import HALF_DTYPES as HALF_DTYPES
from torchcommodity.opkit._op import OPERATORS as OPERATORS
from torchcommodity.opkit._op import Op as Op
from torchcommodity.opkit._override_coverage import Override as Override
from torchcommodity.opkit._override_coverage import OverrideCoverage as OverrideCoverage
from torchcommodity.opkit._override_coverage import override_coverage as override_coverage
from torchcommodity.opkit._override_coverage import same_values as same_values
from torchcommodity.opkit._scalar import ScalarTensor as ScalarTensor
from torchcommodity.opkit._torch_private import assume_constant_result as assume_constant_result
from torchcommodity.opkit._widest import has_float64 as has_float64
from torchcommodity.opkit._widest import widest as widest
from torchcommodity.opkit._widest import widest_dtype as widest_dtype

__all__ = [
    "CHECKS",
    "HALF_DTYPES",
    "OPERATORS",
    "Bad",
    "BuildError",
    "Cases",
    "Diagnosis",
    "Golden",
    "Graph",
    "LiveFunction",
    "LoggingTensor",
    "MetadataTensor",
    "ModelFinding",
    "Op",
    "Override",
    "OverrideCoverage",
    "Past",
    "Report",
    "Result",
    "Sample",
    "ScalarTensor",
    "assume_constant_result",
    "check",
    "decode_text",
    "diagnose",
    "dispatch",
    "encode_text",
    "extension",
    "external",
    "graph",
    "has_float64",
    "has_kernel",
    "implements",
    "live",
    "load",
    "load_inline",
    "load_native_library",
    "native_libraries",
    "new",
    "override_coverage",
    "same_values",
    "trace",
    "vjp",
    "widest",
    "widest_dtype",
]
