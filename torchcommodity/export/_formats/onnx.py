"""Format `onnx`: for onnxruntime, without torch or this package."""

import logging
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from torchcommodity.export._checksum import append_onnx_checksum
from torchcommodity.export._compatibility import CPU
from torchcommodity.export._metadata import Metadata

METADATA = "metadata"  # key in the model's metadata_props


def check_available() -> None:
    """Raise ImportError if a package that converts or runs ONNX is not installed."""
    missing = [name for name in ("onnx", "onnxscript", "onnxruntime") if find_spec(name) is None]
    if missing:
        raise ImportError(
            f"export: format 'onnx' needs {', '.join(missing)}: pip install 'torchcommodity[export]'; "
            "format 'pt2' needs no other package"
        )


def to_bytes(program: torch.export.ExportedProgram, metadata: Metadata, _device: torch.device = CPU) -> bytes:
    """ONNX model with inputs `prices` and `days` and output `quantiles`."""
    torch._dynamo.reset()  # `scan` compiles its body: shapes of an earlier export would leak into this one
    registration = logging.getLogger("torch.onnx._internal.exporter._registration")  # warns if torchvision is missing
    names: dict[str, Any] = {"input_names": ["prices", "days"], "output_names": ["quantiles"]}
    # recompiled for another shape, the body of `scan` would take a size as an additional, unbound input
    shapes = torch._dynamo.config.patch(automatic_dynamic_shapes=False, recompile_limit=64)
    with shapes, mock.patch.object(registration, "disabled", True), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations inside torch's exporter
        exported = torch.onnx.export(program, dynamo=True, verbose=False, **names)
    assert exported is not None, "torch.onnx.export returned None"
    model = exported.model_proto
    _strip_debug_info(model)
    entry = model.metadata_props.add()
    entry.key, entry.value = METADATA, metadata.to_json()
    return append_onnx_checksum(model.SerializeToString(deterministic=True))


def from_bytes(model: bytes) -> tuple[str, Callable[[Tensor, Tensor], Tensor]]:
    """The metadata JSON and the forecaster of a model."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError("an onnx artifact needs onnxruntime: pip install 'torchcommodity[export]'") from error
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])

    def forward(prices: Tensor, days: Tensor) -> Tensor:
        return torch.from_numpy(session.run(None, {"prices": prices.numpy(), "days": days.numpy()})[0])

    return session.get_modelmeta().custom_metadata_map[METADATA], forward


def _strip_debug_info(message: Any) -> None:
    """Remove doc strings and metadata, which contain local paths, from a message and its children."""
    for name in ("metadata_props", "doc_string"):
        if name in message.DESCRIPTOR.fields_by_name:
            message.ClearField(name)
    for field, value in message.ListFields():
        if field.message_type is not None and field.name in ("graph", "graphs", "node", "functions", "attribute", "g"):
            for child in [value] if hasattr(value, "DESCRIPTOR") else value:
                _strip_debug_info(child)
