"""The operator in ONNX, compared in onnxruntime."""

import logging
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from torchcommodity.opkit._contract.case import Case, SkipCheck
from torchcommodity.opkit._contract.checks import register
from torchcommodity.opkit._contract.compare import assert_close
from torchcommodity.opkit._contract.exported import sizes
from torchcommodity.opkit._contract.module import CaseModule
from torchcommodity.opkit._contract.writes import written_arguments


@register(
    "The reference has no ONNX form. Give the record a `decomposition`: no loop over time, operators that ONNX knows.",
    depends_on=("export",),
    compiled=True,
)
def onnx(case: Case) -> None:
    """ONNX in onnxruntime agrees: for any number of rows, or without a `decomposition`, for the sample's."""
    _require_onnx()
    if written_arguments(case.op):
        raise SkipCheck("not supported: ONNX has no operators that write to their arguments")
    try:
        run_onnx(CaseModule([case]))
    except Exception:
        if case.op.decomposition is not None:
            raise
        run_onnx(CaseModule([case]), time=False)


def _require_onnx() -> None:
    try:
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise SkipCheck(f"ONNX is not installed: {error}") from error


def run_onnx(module: CaseModule, time: bool = True) -> None:
    """Export with a dynamic batch size and, with `time`, a dynamic number of rows; compare in onnxruntime."""
    import onnxruntime

    torch._dynamo.reset()
    registration = logging.getLogger("torch.onnx._internal.exporter._registration")  # warns without torchvision
    # Dynamo recompiles each `scan` of a graph for other shapes, and would then add an input for their size.
    shapes = torch._dynamo.config.patch(automatic_dynamic_shapes=False, recompile_limit=64)
    with torch.no_grad(), shapes, mock.patch.object(registration, "disabled", True):
        program = torch.onnx.export(
            module, module.inputs(), dynamic_shapes=(module.dynamic_shapes(time),), dynamo=True, verbose=False
        )
    assert program is not None, "torch.onnx.export returned nothing"
    tolerance = 1e-5 if _is_rounded(program.model_proto) else 1e-9
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what it raises, it need not print too
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString(), options)
    for inputs in sizes(module) if time else [module.inputs()]:
        feed = {i.name: x.numpy() for i, x in zip(session.get_inputs(), inputs, strict=True)}
        actual = tuple(torch.from_numpy(y) for y in session.run(None, feed))
        assert_close(actual, module(*inputs), tolerance, f"ONNX, called with {[tuple(x.shape) for x in inputs]}")


def _is_rounded(model: Any) -> bool:
    """Whether a constant was rounded to float32, as the exporter does to Python numbers: 0.1 was, 0.5 needs not."""
    constants = [x.flatten().double() for body in (model.graph, *model.functions) for x in _constants(body)]
    values = torch.cat([torch.zeros(1, dtype=torch.double), *constants])
    single = values.float()
    return bool(((single == values) & (single.half() != single)).any())


def _constants(body: Any) -> Iterator[Tensor]:
    """Numbers of a graph or function in ONNX: initializers, attributes, and those of graphs inside nodes."""
    from onnx import numpy_helper

    tensors = list(getattr(body, "initializer", ()))
    for attribute in (a for node in body.node for a in node.attribute):
        yield torch.tensor([attribute.f, *attribute.floats])
        tensors += [attribute.t] if attribute.HasField("t") else []
        for graph in [attribute.g, *attribute.graphs]:
            yield from _constants(graph)
    for tensor in tensors:
        array = numpy_helper.to_array(tensor)
        if array.dtype.kind == "f":
            yield torch.from_numpy(array.copy())
