"""Tools for authors of PyTorch operators: records, the contract, native builds, diagnosis of models, tensor types.

What operators need at run time is imported at once; the tools of their authors are, on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from torch_opkit._cases import Bad as Bad
from torch_opkit._cases import Cases as Cases
from torch_opkit._cases import Golden as Golden
from torch_opkit._cases import Sample as Sample
from torch_opkit._implements import dispatch as dispatch
from torch_opkit._implements import implements as implements
from torch_opkit._live import LiveFunction as LiveFunction
from torch_opkit._live import Past as Past
from torch_opkit._live import decode_text as decode_text
from torch_opkit._live import encode_text as encode_text
from torch_opkit._live import live as live
from torch_opkit._metadata import MetadataTensor as MetadataTensor
from torch_opkit._native import has_kernel as has_kernel
from torch_opkit._native import load_native_library as load_native_library
from torch_opkit._native import native_libraries as native_libraries
from torch_opkit._op import HALF_DTYPES as HALF_DTYPES
from torch_opkit._op import OPERATORS as OPERATORS
from torch_opkit._op import Op as Op
from torch_opkit._torch_private import assume_constant_result as assume_constant_result
from torch_opkit._vjp import vjp as vjp
from torch_opkit._widest import has_float64 as has_float64
from torch_opkit._widest import widest as widest
from torch_opkit._widest import widest_dtype as widest_dtype

if TYPE_CHECKING:
    from torch_opkit._build.compiler import BuildError as BuildError
    from torch_opkit._build.extension import extension as extension
    from torch_opkit._build.load import load as load
    from torch_opkit._build.load import load_inline as load_inline
    from torch_opkit._contract.checks import CHECKS as CHECKS
    from torch_opkit._contract.report import Report as Report
    from torch_opkit._contract.report import Result as Result
    from torch_opkit._contract.runner import check as check
    from torch_opkit._diagnose.diagnose import diagnose as diagnose
    from torch_opkit._diagnose.findings import Diagnosis as Diagnosis
    from torch_opkit._diagnose.findings import ModelFinding as ModelFinding
    from torch_opkit._external import external as external
    from torch_opkit._graph.graph import Graph as Graph
    from torch_opkit._graph.graph import graph as graph
    from torch_opkit._logging import LoggingTensor as LoggingTensor
    from torch_opkit._logging import trace as trace
    from torch_opkit._new import new as new
    from torch_opkit._override_coverage import Override as Override
    from torch_opkit._override_coverage import OverrideCoverage as OverrideCoverage
    from torch_opkit._override_coverage import override_coverage as override_coverage
    from torch_opkit._override_coverage import same_values as same_values
    from torch_opkit._scalar import ScalarTensor as ScalarTensor

__version__ = "0.1.0"

_TOOLS = {
    "BuildError": "_build.compiler",
    "extension": "_build.extension",
    "load": "_build.load",
    "load_inline": "_build.load",
    "CHECKS": "_contract.checks",
    "Report": "_contract.report",
    "Result": "_contract.report",
    "check": "_contract.runner",
    "diagnose": "_diagnose.diagnose",
    "Diagnosis": "_diagnose.findings",
    "ModelFinding": "_diagnose.findings",
    "external": "_external",
    "Graph": "_graph.graph",
    "graph": "_graph.graph",
    "LoggingTensor": "_logging",
    "trace": "_logging",
    "new": "_new",
    "Override": "_override_coverage",
    "OverrideCoverage": "_override_coverage",
    "override_coverage": "_override_coverage",
    "same_values": "_override_coverage",
    "ScalarTensor": "_scalar",
}

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


def __getattr__(name: str) -> object:
    if name not in _TOOLS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_TOOLS[name]}"), name)
    globals()[name] = value  # the next access does not come here
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
