"""Format `onnx`: for onnxruntime, without torch or this package."""

import logging
import re
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from torchcommodity.export._checksum import append_onnx_checksum
from torchcommodity.export._compatibility import CPU
from torchcommodity.export._metadata import Metadata

METADATA = "metadata"  # key in the model's metadata_props
# messages of ONNX that contain nodes or tensors: field number to message
MESSAGES: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {},
}
EXTERNAL_DATA, DATA_LOCATION = 13, 14  # fields of a tensor
OP_TYPE = 4  # of a node
# random numbers, and a loop that may be endless: a recurrence is a Scan, of as many steps as its input has rows
REFUSED = re.compile(rb"Random(Normal|Uniform).*|Multinomial|Bernoulli|Loop")


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
    registration = logging.getLogger("torch.onnx._internal.exporter._registration")  # warns if torchvision is missing
    names: dict[str, Any] = {"input_names": ["prices", "days"], "output_names": ["quantiles"]}
    with mock.patch.object(registration, "disabled", True), warnings.catch_warnings():
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
    check_model(model)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # errors are raised; it would print them, too
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def forward(prices: Tensor, days: Tensor) -> Tensor:
        return torch.from_numpy(session.run(None, {"prices": prices.numpy(), "days": days.numpy()})[0])

    return session.get_modelmeta().custom_metadata_map[METADATA], forward


def check_model(model: bytes) -> None:
    """Raise ValueError for tensors in other files, which onnxruntime would read, random operators, or endless ones."""
    messages = [("model", memoryview(model))]
    while messages:
        name, content = messages.pop()
        for field, value in _fields(content):
            if name == "tensor" and (field == EXTERNAL_DATA or (field == DATA_LOCATION and value != 0)):
                raise ValueError("content other than a graph and its weights: weights in another file")
            if name == "node" and field == OP_TYPE and not isinstance(value, int) and REFUSED.fullmatch(value):
                raise ValueError(f"content other than a graph and its weights: {bytes(value).decode()}")
            if not isinstance(value, int) and field in MESSAGES[name]:
                messages.append((MESSAGES[name][field], value))


def _fields(content: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Fields of a protobuf message: number, and value or bytes."""
    at = 0

    def varint() -> int:
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = content[at]
            at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value
            if shift > 63:
                raise ValueError("a protobuf message with numbers of 64 bits; got a longer one")

    while at < len(content):
        field, kind = divmod(varint(), 8)
        if kind == 0:
            yield field, varint()
            continue
        if kind not in (1, 2, 5):
            raise ValueError(f"a protobuf message without groups; got wire type {kind}")
        size = varint() if kind == 2 else {1: 8, 5: 4}[kind]
        if at + size > len(content):
            raise ValueError("a complete protobuf message; got a field that is longer")
        yield field, content[at : at + size]
        at += size


def _strip_debug_info(message: Any) -> None:
    """Remove doc strings and metadata, which contain local paths, from a message and its children."""
    for name in ("metadata_props", "doc_string"):
        if name in message.DESCRIPTOR.fields_by_name:
            message.ClearField(name)
    for field, value in message.ListFields():
        if field.message_type is not None and field.name in ("graph", "graphs", "node", "functions", "attribute", "g"):
            for child in [value] if hasattr(value, "DESCRIPTOR") else value:
                _strip_debug_info(child)
