"""The format `onnx`: for onnxruntime, which needs neither torch nor this package."""

import logging
import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from torchcommodity.opkit import torch_private
from torchcommodity.optimize.about import About

ABOUT = "about"  # the entry of the file's metadata


def to_bytes(program: torch.export.ExportedProgram, about: About) -> bytes:
    """A model with inputs `prices` and `days`, and the output `quantiles`."""
    torch._dynamo.reset()  # `scan` compiles its body: the shapes of an earlier export would leak into this one
    registration = logging.getLogger("torch.onnx._internal.exporter._registration")  # warns where torchvision is not
    names: dict[str, Any] = {"input_names": ["prices", "days"], "output_names": ["quantiles"]}
    lacking = mock.patch.dict(torch_private.decomposition_table, {torch.ops.aten.cummax.default: _cummax})
    with lacking, mock.patch.object(registration, "disabled", True), warnings.catch_warnings():
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
    """What `About.json` wrote, and the forecaster."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError("an onnx artefact needs onnxruntime: pip install 'torchcommodity[export]'") from error
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])

    def run(prices: Tensor, days: Tensor) -> Tensor:
        return torch.from_numpy(session.run(None, {"prices": prices.numpy(), "days": days.numpy()})[0])

    return session.get_modelmeta().custom_metadata_map[ABOUT], run


def _cummax(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """The running maximum, which ONNX lacks, row by row."""

    def step(high: tuple[Tensor, Tensor], row: tuple[Tensor, Tensor]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        higher = tuple(torch.where(row[0] >= high[0], new, old) for new, old in zip(row, high))
        return higher, tuple(part.clone() for part in higher)

    rows = x.movedim(dim, 0).contiguous()
    places = torch.arange(rows.shape[0]).reshape(-1, *[1] * (rows.dim() - 1)).expand_as(rows).contiguous()
    highest, place = torch._higher_order_ops.scan(step, (rows[0].clone(), places[0].clone()), (rows, places))[1]
    return highest.movedim(0, dim), place.movedim(0, dim)


def _without_traces(part: Any) -> None:
    """Without what it says of the code it came from, paths of this machine among it."""
    for name in ("metadata_props", "doc_string"):
        if name in part.DESCRIPTOR.fields_by_name:
            part.ClearField(name)
    for field, value in part.ListFields():
        if field.message_type is not None and field.name in ("graph", "graphs", "node", "functions", "attribute", "g"):
            for inner in [value] if hasattr(value, "DESCRIPTOR") else value:
                _without_traces(inner)
