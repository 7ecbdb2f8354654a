"""The operator without Python: `torch.export`, and AOTInductor in a fresh process."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from torchcommodity.opkit._contract.case import Case, SkipCheck, Tensors
from torchcommodity.opkit._contract.checks import register
from torchcommodity.opkit._contract.compare import assert_close
from torchcommodity.opkit._contract.module import CaseModule, export_program
from torchcommodity.opkit._contract.values import VALUES
from torchcommodity.opkit._contract.writes import written_arguments
from torchcommodity.opkit._native import native_libraries
from torchcommodity.opkit._op import Op

FAST_BUILD = {"aot_inductor.precompile_headers": False, "aot_inductor.compile_wrapper_opt_level": "O0"}
FRESH_PROCESS = """
import sys, torch
folder, *libraries = sys.argv[1:]
for library in libraries: torch.ops.load_library(library)
model = torch._inductor.aoti_load_package(f"{folder}/model.pt2")
for inputs, expected in torch.load(f"{folder}/data.pt"):
    torch.testing.assert_close(tuple(model(*inputs)), expected, rtol=1e-9, atol=1e-9, equal_nan=True)
assert not any(name.startswith("torchcommodity") for name in sys.modules)
"""


@register(
    "Export without Dynamo fails: the public function must not branch on values or turn a shape into a Python number.",
    depends_on=(*VALUES, "no_data_dependence", "compile_forward", "compile_shapes"),
    compiled=True,
)
def export(case: Case) -> None:
    """`torch.export` keeps the operator, for any batch size and any number of rows."""
    _assert_exports(case, strict=False)


@register(
    "Only export by Dynamo fails: look at what the public function does under strict=True.",
    depends_on=("export",),
    compiled=True,
)
def export_strict(case: Case) -> None:
    """`torch.export(strict=True)` keeps it too, for any batch size and any number of rows."""
    _assert_exports(case, strict=True)


def _assert_exports(case: Case, strict: bool) -> None:
    module = CaseModule([case])
    program = export_program(module, strict)
    targets = [node.target for node in program.graph.nodes]
    if isinstance(case.op, Op):  # others may be replaced by their parts
        assert case.op.overload in targets, f"{case.op.qualified_name} is not in the exported graph"
    for inputs in sizes(module):
        shapes = [tuple(x.shape) for x in inputs]
        assert_close(program.module()(*inputs), module(*inputs), 1e-12, f"exported, called with {shapes}")


def sizes(module: CaseModule) -> list[Tensors]:
    """Inputs as an exported program is called: of the sample's size, and of another one."""
    return [module.inputs(), module.inputs(3, 2 * module.rows)]


@register(
    "The ahead-of-time model fails without Python: declare the schema in the native library (COMMODITY_OPERATOR does), "
    "and write the reference with PyTorch's own operators.",
    depends_on=("export",),
    compiled=True,
)
def aot_inductor(case: Case) -> None:
    """AOTInductor runs in a fresh process without the Python package, by the native library or by the reference."""
    if not isinstance(case.op, Op) and (case.op.plain or case.op.make.composite):
        raise SkipCheck("it is made of other operators, which run without Python")
    if written_arguments(case.op) and not case.op.native:
        raise SkipCheck("not supported: an operator that writes to arguments runs without Python by its native library")
    if not case.op.native and not _definition(case.op):
        raise SkipCheck("a kernel in Python needs a definition to run without Python: pass reference=function")
    run_ahead_of_time(CaseModule([case]))


def _definition(op: Any) -> Any:
    """The reference as compilers take it, with the arguments and the result of the operator."""
    return op.reference if isinstance(op, Op) else op.declaration.reference


def run_ahead_of_time(module: CaseModule) -> None:
    """Compile with AOTInductor and compare in a fresh process.

    Operators of a native library stay in the graph; the others are replaced by their references, at fixed sizes.
    """
    libraries = native_libraries()
    references = {case.op.overload: _definition(case.op) for case in module.cases if not case.op.native}
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        program = export_program(module, time=not references)
        if references:
            program = program.run_decompositions(torch.export.default_decompositions() | references)
        package = f"{folder}/model.pt2"
        torch._inductor.aoti_compile_and_package(program, package_path=package, inductor_configs=FAST_BUILD)
        tried = [module.inputs()] if references else sizes(module)
        torch.save([(inputs, module(*inputs)) for inputs in tried], Path(folder, "data.pt"))
        command = [sys.executable, "-c", FRESH_PROCESS, folder, *map(str, libraries)]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        assert not process.returncode, f"in the fresh process: {process.stderr.strip()[-400:]}"
