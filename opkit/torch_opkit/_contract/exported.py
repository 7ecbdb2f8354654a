"""The operator without Python: `torch.export`, AOTInductor in a fresh process, and ONNX in onnxruntime."""

import logging
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from torch_opkit._contract.case import Case, SkipCheck, Tensors
from torch_opkit._contract.checks import register
from torch_opkit._contract.compare import assert_close
from torch_opkit._contract.foreign import ForeignOp
from torch_opkit._contract.module import CaseModule, export_program
from torch_opkit._contract.values import VALUES
from torch_opkit._contract.writes import written_arguments
from torch_opkit._native import native_libraries
from torch_opkit._op import Op

FAST_BUILD = {"aot_inductor.precompile_headers": False, "aot_inductor.compile_wrapper_opt_level": "O0"}
FRESH_PROCESS = """
import sys, torch
folder, *libraries = sys.argv[1:]
for library in libraries: torch.ops.load_library(library)
model = torch._inductor.aoti_load_package(f"{folder}/model.pt2")
for inputs, expected in torch.load(f"{folder}/data.pt"):
    torch.testing.assert_close(tuple(model(*inputs)), expected, rtol=1e-9, atol=1e-9, equal_nan=True)
assert not any(name.startswith("torch_opkit") for name in sys.modules)
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
    "The ahead-of-time model fails without Python: declare the schema in the native library (STABLE_TORCH_LIBRARY), "
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


def _definition(op: Op | ForeignOp) -> Callable[..., Any] | None:
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


@register(
    "The reference has no ONNX form. Give the record a `decomposition`: no loop over time, operators that ONNX knows.",
    depends_on=("export",),
    compiled=True,
)
def onnx(case: Case) -> None:
    """ONNX in onnxruntime agrees: for any number of rows, or without a `decomposition`, for the sample's."""
    try:
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise SkipCheck(f"ONNX is not installed: {error}") from error
    if written_arguments(case.op):
        raise SkipCheck("not supported: ONNX has no operators that write to their arguments")
    try:
        run_onnx(CaseModule([case]))
    except Exception:
        if case.op.decomposition is not None:
            raise
        run_onnx(CaseModule([case]), time=False)


def run_onnx(module: CaseModule, time: bool = True) -> None:
    """Export with a dynamic batch size and, with `time`, a dynamic number of rows; compare in onnxruntime."""
    import onnxruntime

    registration = logging.getLogger("torch.onnx._internal.exporter._registration")  # warns without torchvision
    with torch.no_grad(), mock.patch.object(registration, "disabled", True):
        program = torch.onnx.export(
            module, module.inputs(), dynamic_shapes=(module.dynamic_shapes(time),), dynamo=True, verbose=False
        )
    assert program is not None, "torch.onnx.export returned nothing"
    # The exporter rounds Python numbers to float32: a constant that is one, and needs more bits than a float16, was.
    model = program.model_proto
    constants = [x.flatten().double() for part in (model.graph, *model.functions) for x in _onnx_constants(part)]
    values = torch.cat([torch.zeros(1, dtype=torch.double), *constants])
    single = values.float()
    tolerance = 1e-5 if bool(((single == values) & (single.half() != single)).any()) else 1e-9
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what it raises, it need not print too
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    for inputs in sizes(module) if time else [module.inputs()]:
        feed = {i.name: x.numpy() for i, x in zip(session.get_inputs(), inputs, strict=True)}
        actual = tuple(torch.from_numpy(y) for y in session.run(None, feed))
        assert_close(actual, module(*inputs), tolerance, f"ONNX, called with {[tuple(x.shape) for x in inputs]}")


def _onnx_constants(body: Any) -> Iterator[Tensor]:
    """Numbers of a graph or function in ONNX: initializers, attributes, and those of graphs inside nodes."""
    from onnx import numpy_helper

    tensors = list(getattr(body, "initializer", ()))
    for attribute in (a for node in body.node for a in node.attribute):
        yield torch.tensor([attribute.f, *attribute.floats])
        tensors += [attribute.t] if attribute.HasField("t") else []
        for graph in [attribute.g, *attribute.graphs]:
            yield from _onnx_constants(graph)
    for tensor in tensors:
        array = numpy_helper.to_array(tensor)
        if array.dtype.kind == "f":
            yield torch.from_numpy(array.copy())
