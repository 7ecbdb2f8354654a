"""The format `onnx`: for onnxruntime, which needs neither torch nor this package."""

import logging
import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from torchcommodity.export._metadata import Metadata

ABOUT = "about"  # the entry of the file's metadata


def to_bytes(program: torch.export.ExportedProgram, about: Metadata) -> bytes:
    """A model with inputs `prices` and `days`, and the output `quantiles`."""
    torch._dynamo.reset()  # `scan` compiles its body: the shapes of an earlier export would leak into this one
    registration = logging.getLogger("torch.onnx._internal.exporter._registration")  # warns where torchvision is not
    names: dict[str, Any] = {"input_names": ["prices", "days"], "output_names": ["quantiles"]}
    # `scan` compiles its body again for other shapes, and would then take a size as an input that nobody gives
    shapes = torch._dynamo.config.patch(automatic_dynamic_shapes=False, recompile_limit=64)
    with shapes, mock.patch.object(registration, "disabled", True), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what torch's own exporter will change
        exported = torch.onnx.export(program, dynamo=True, verbose=False, **names)
    assert exported is not None, "torch.onnx.export returned nothing"
    model = exported.model_proto
    _without_traces(model)
    entry = model.metadata_props.add()
    entry.key, entry.value = ABOUT, about.json()
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def from_bytes(model: bytes) -> tuple[str, Callable[[Tensor, Tensor], Tensor]]:
    """What `Metadata.json` wrote, and the forecaster."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError("an onnx artifact needs onnxruntime: pip install 'torchcommodity[export]'") from error
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])

    def run(prices: Tensor, days: Tensor) -> Tensor:
        return torch.from_numpy(session.run(None, {"prices": prices.numpy(), "days": days.numpy()})[0])

    return session.get_modelmeta().custom_metadata_map[ABOUT], run


def _without_traces(part: Any) -> None:
    """Without what it says of the code it came from, paths of this machine among it."""
    for name in ("metadata_props", "doc_string"):
        if name in part.DESCRIPTOR.fields_by_name:
            part.ClearField(name)
    for field, value in part.ListFields():
        if field.message_type is not None and field.name in ("graph", "graphs", "node", "functions", "attribute", "g"):
            for inner in [value] if hasattr(value, "DESCRIPTOR") else value:
                _without_traces(inner)
