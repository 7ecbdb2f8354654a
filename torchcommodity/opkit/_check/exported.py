"""An operator leaves Python: `torch.export`, AOTInductor in a fresh process, ONNX."""

import logging
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

import torch

from torchcommodity.opkit._check.compare import same
from torchcommodity.opkit._check.graphs import Doors, exported
from torchcommodity.opkit._check.rows import row
from torchcommodity.opkit._check.subject import Skip, Subject
from torchcommodity.opkit._check.values import VALUES
from torchcommodity.opkit._native import native_libraries

QUICK = {"aot_inductor.precompile_headers": False, "aot_inductor.compile_wrapper_opt_level": "O0"}
FRESH = """
import sys, torch
folder, *libraries = sys.argv[1:]
for library in libraries: torch.ops.load_library(library)
model = torch._inductor.aoti_load_package(f"{folder}/model.pt2")
for inputs, expected in torch.load(f"{folder}/data.pt"):
    torch.testing.assert_close(tuple(model(*inputs)), expected, rtol=1e-9, atol=1e-9, equal_nan=True)
assert not any(name.startswith("torchcommodity") for name in sys.modules)
"""


@row(
    "Export without Dynamo fails: no value may decide the way through the door, no shape may become a Python number.",
    after=(*VALUES, "traced", "compile_forward", "compile_shapes"),
    compiled=True,
)
def export(subject: Subject) -> None:
    """`torch.export` keeps the operator, for any batch and any number of rows."""
    _agrees(subject, strict=False)


@row(
    "Export by Dynamo fails where the other did not: look at what the door does under strict=True.",
    after=("export",),
    compiled=True,
)
def export_strict(subject: Subject) -> None:
    """`torch.export(strict=True)` does so too."""
    _agrees(subject, strict=True)


def _agrees(subject: Subject, strict: bool) -> None:
    doors = Doors([subject])
    program = exported(doors, strict)
    kept = any(node.target is subject.op.overload for node in program.graph.nodes)
    assert kept, f"{subject.op.qualified_name} is not in the exported graph"
    for inputs in _sizes(doors):
        same(program.module()(*inputs), doors(*inputs), 1e-12, f"exported: {[tuple(x.shape) for x in inputs]}")


def _sizes(doors: Doors) -> list[tuple[torch.Tensor, ...]]:
    return [doors.inputs(), doors.inputs(3, 2 * doors.rows)]


@row(
    "The ahead-of-time model fails without Python: declare the schema in the native library (COMMODITY_OPERATOR does), "
    "and keep the reference to plain operators.",
    after=("export",),
    compiled=True,
)
def aot_inductor(subject: Subject) -> None:
    """AOTInductor runs in a fresh process without our Python: by the library alone, or by the reference."""
    run_ahead_of_time(Doors([subject]))


def run_ahead_of_time(doors: Doors) -> None:
    """Operators of a native library stay what they are; the others are replaced by their references, at fixed size."""
    native = native_libraries()
    foreign = {s.op.overload: s.op.reference for s in doors.subjects if not s.op.native}
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        program = exported(doors, time=not foreign)
        if foreign:
            program = program.run_decompositions(torch.export.default_decompositions() | foreign)
        torch._inductor.aoti_compile_and_package(program, package_path=f"{folder}/model.pt2", inductor_configs=QUICK)
        sizes = [doors.inputs()] if foreign else _sizes(doors)
        torch.save([(inputs, doors(*inputs)) for inputs in sizes], Path(folder, "data.pt"))
        command = [sys.executable, "-c", FRESH, folder, *map(str, native)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert not done.returncode, f"in the fresh process: {done.stderr.strip()[-400:]}"


@row(
    "The reference has no ONNX form. Give the record a `decomposition`: no loop over time, operators that ONNX knows.",
    after=("export",),
    compiled=True,
)
def onnx(subject: Subject) -> None:
    """ONNX runs in onnxruntime and agrees: at any number of rows, or where the definition loops, at the sample's."""
    _wanted()
    try:
        run_onnx(Doors([subject]))
    except Exception:
        if subject.op.decomposition is not None:
            raise
        run_onnx(Doors([subject]), time=False)


def _wanted() -> None:
    try:
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as missing:
        raise Skip(f"ONNX is not installed: {missing}") from missing


def run_onnx(doors: Doors, time: bool = True) -> None:
    """Exported with free batch and, if asked, free time; run at the size of the sample and, if so, at another."""
    import onnxruntime

    sizes = _sizes(doors) if time else [doors.inputs()]
    torch._dynamo.reset()
    registration = logging.getLogger("torch.onnx._internal.exporter._registration")  # warns where torchvision is not
    # each `scan` of a graph is compiled again for other shapes, and would then take a size that nobody gives it
    shapes = torch._dynamo.config.patch(automatic_dynamic_shapes=False, recompile_limit=64)
    with torch.no_grad(), shapes, mock.patch.object(registration, "disabled", True):
        program = torch.onnx.export(
            doors, doors.inputs(), dynamic_shapes=(doors.dynamic(time),), dynamo=True, verbose=False
        )
    assert program is not None, "torch.onnx.export returned nothing"
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString())
    for inputs in sizes:
        feed = {i.name: x.numpy() for i, x in zip(session.get_inputs(), inputs, strict=True)}
        got = tuple(torch.from_numpy(y) for y in session.run(None, feed))
        same(got, doors(*inputs), 1e-9, f"ONNX: {[tuple(x.shape) for x in inputs]}")
