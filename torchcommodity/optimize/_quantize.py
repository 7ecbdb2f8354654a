"""Weight-only int8 quantization, and what it did to every weight and to the outputs of a model."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from torch_opkit.arguments import operation, raise_invalid
from torchcommodity import nn as layers
from torchcommodity.forecast import Forecaster
from torchcommodity.nn import to_int8
from torchcommodity.optimize._batches import raise_empty, split_inputs
from torchcommodity.optimize._module import Model, call_model, module_of, restored_mode, with_module
from torchcommodity.optimize._steps import named_tensors
from torchcommodity.optimize._table import format_table
from torchcommodity.optimize._weights import Weight, copy_without_masks, list_weights, select_weights
from torchcommodity.training import ModelInputs

QUANTIZED = (
    nn.Linear,
    nn.Bilinear,
    nn.modules.conv._ConvNd,
    nn.Embedding,
    nn.EmbeddingBag,
    nn.RNNBase,
    nn.RNNCellBase,
    nn.MultiheadAttention,
    layers.LSTM,
    layers.LLTM,
    layers.LLTMCell,
    layers.LSTMCell,
    layers.CrossAssetAttention,
)


@operation("quantize")
def quantize(model: Model) -> Model:
    """Quantize the weights of a model to int8 with one scale per row.

    Quantized are the weights of two or more axes of linear, convolutional, recurrent, embedding and attention layers;
    a row is an output, a channel, or an entry of an embedding. Linear layers get the integers of torchao's
    `Int8WeightOnlyConfig`, the other layers, which it does not support, those of `nn.to_int8`. Both are stored in the
    same form, so that loading a forecaster does not require torchao. Of a parametrized weight (weight_norm,
    orthogonal, positive) the parameters are quantized, and the constraint holds for the result. Layers that share a
    weight share its integers.

    Weights are dequantized on use: this saves bytes, not multiplications. Biases, normalization and the econometric
    part of a forecaster keep their dtype. `quantization_report` lists what was quantized, what was left and why.

    Args:
        model: any module, or a forecaster with a network; not changed.

    Returns:
        A copy in evaluation mode with int8 weights, which cannot be trained: a module of the same class, or a
        forecaster. It can be copied, compiled and exported; of a module the state dict is saved, and loaded into the
        quantized copy of a module of the same architecture.

    Raises:
        ImportError: torchao is not installed; `pip install 'torchcommodity[quantize]'`.
        TypeError: the model is not an nn.Module or a Forecaster.
        ValueError: there is no weight to quantize, or one is not finite.

    References:
        Jacob et al. (2018). Quantization and training of neural networks for efficient integer-arithmetic-only
        inference. CVPR. doi:10.1109/CVPR.2018.00286.

    Example:
        >>> import torch
        >>> from torchcommodity import optimize
        >>> model = torch.nn.Sequential(torch.nn.Conv1d(3, 8, 5), torch.nn.ReLU(), torch.nn.Conv1d(8, 2, 5)).eval()
        >>> int8 = optimize.quantize(model)
        >>> int8[0].parametrizations.weight.original0.dtype
        torch.int8
        >>> x = torch.randn(4, 3, 20)
        >>> torch.allclose(int8(x), model(x), atol=0.05)
        True
    """
    module = copy_without_masks(model)
    for weight in select_weights(module, "quantize", reason_not_quantized):
        _quantize(weight)
    return with_module(model, module.eval())


def reason_not_quantized(weight: Weight) -> str:
    """Why a weight keeps its dtype, in words; empty if it is quantized."""
    if weight.econometric:
        return "econometric part, calibrated in closed form"
    if not weight.value.is_floating_point() or is_int8(weight):
        return "int8 already" if is_int8(weight) else "not floating-point"
    if weight.value.dim() < 2:
        return "one axis: a bias or a scale"
    if not all(isinstance(layer, QUANTIZED) for layer in weight.layers):
        other = next(layer for layer in weight.layers if not isinstance(layer, QUANTIZED))
        return f"its use in {type(other).__name__.removeprefix('Parametrized')} is not known"
    if any(getattr(layer, "max_norm", None) is not None for layer in weight.layers):
        return "max_norm renormalizes the embedding in place"
    if not _originals(weight):
        return "one column: integers and scales would be larger"
    return ""


def is_int8(weight: Weight) -> bool:
    """Whether a weight is stored as int8 integers."""
    return any(x.dtype == torch.int8 for _, _, x in _stored(weight, *weight.owners[0]))


def stored_bytes(weight: Weight) -> int:
    """Bytes of the parameters of a weight, counted once if layers share it."""
    return sum(x.nbytes for _, _, x in _stored(weight, *weight.owners[0]))


def _originals(weight: Weight) -> list[list[tuple[nn.Module, str]]]:
    """Parameters to quantize, each with all of its owners: the weight itself, or those it is computed from."""
    owners: dict[int, list[tuple[nn.Module, str]]] = {}
    for layer, name in weight.owners:
        for part, attribute, x in _stored(weight, layer, name):
            int8_bytes = x.numel() + len(x) * x.element_size()  # integers, and one scale per row
            if x.dim() > 1 and int8_bytes < x.nbytes:
                owners.setdefault(id(x), []).append((part, attribute))
    return list(owners.values())


def _stored(weight: Weight, layer: nn.Module, name: str) -> Iterator[tuple[nn.Module, str, Tensor]]:
    """Owner, attribute and value of the parameters that store a weight in one of its layers."""
    if not weight.parametrizations:
        yield layer, name, getattr(layer, name)
        return
    for part in layer.get_submodule(f"parametrizations.{name}").modules():
        for attribute, x in part.named_parameters(recurse=False):
            yield part, attribute, x


def _quantize(weight: Weight) -> None:
    """Replace the parameters of a weight by integers and scales, which all owners share."""
    linear = not weight.parametrizations and type(weight.layers[0]) is nn.Linear
    values = torchao_int8(weight.value) if linear and weight.value.dtype == torch.float32 else None
    for owners in _originals(weight):
        stored: Any = None
        for layer, name in owners:
            to_int8(layer, name)
            part: Any = layer.get_submodule(f"parametrizations.{name}")
            if stored is None:
                stored = part
                if values is not None:
                    part.original0.copy_(values[0])
                    part.original1.data.copy_(values[1])
            part.original0, part.original1 = stored.original0, stored.original1


def torchao_int8(weight: Tensor) -> tuple[Tensor, Tensor]:  # (out, in) -> (out, in) int8, (out, 1)
    """Integers and scales of the weight of a linear layer as quantized by torchao."""
    for name in ("torchao", "torch.utils._pytree"):  # silences messages about kernels of other platforms
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        from torchao.quantization import Int8WeightOnlyConfig, quantize_
    except ImportError as error:
        raise ImportError("quantize: needs torchao; pip install 'torchcommodity[quantize]'") from error
    linear = nn.Linear(weight.shape[1], weight.shape[0], bias=False, device=weight.device, dtype=weight.dtype)
    linear.weight.data.copy_(weight)
    container = nn.Sequential(linear)
    quantize_(container, Int8WeightOnlyConfig(version=2))
    quantized: Any = container[0].weight
    return quantized.qdata, quantized.scale


class QuantizedWeight(NamedTuple):
    """One weight before and after."""

    name: str
    bytes_before: int
    bytes_after: int
    note: str  # why it was left; empty if it is int8


@dataclass(frozen=True)
class QuantizationReport:
    """Every weight of a model, quantized or left; prints as a table."""

    weights: tuple[QuantizedWeight, ...]
    max_error: float | None  # largest absolute difference of an output on the example
    relative_error: float | None  # root mean square of the differences over that of the outputs

    @property
    def bytes_before(self) -> int:
        """Bytes of all weights before."""
        return sum(row.bytes_before for row in self.weights)

    @property
    def bytes_after(self) -> int:
        """Bytes of all weights after."""
        return sum(row.bytes_after for row in self.weights)

    def __str__(self) -> str:
        rows = [(row.name, f"{row.bytes_before:,}", f"{row.bytes_after:,}", row.note or "int8") for row in self.weights]
        rows.append(("total", f"{self.bytes_before:,}", f"{self.bytes_after:,}", ""))
        table = format_table(("weight", "bytes before", "bytes after", "result"), rows)
        if self.max_error is None:
            return table
        error = f"largest error {self.max_error:.1e}, relative error {self.relative_error:.2%}"
        return f"{table}\nOutputs of the example: {error}"


@operation("quantization_report")
def quantization_report(
    model: nn.Module | Forecaster, quantized: nn.Module | Forecaster, example: object = None
) -> QuantizationReport:
    """List every weight of a model that was quantized or left, with the reason, its bytes, and the error of outputs.

    Args:
        model: the model before: a module or a forecaster.
        quantized: result of `quantize(model)`.
        example: a batch, to measure the error of outputs in evaluation mode: a Tensor, a tuple of arguments, a mapping
            of keyword arguments, or the prices of a forecaster; or a list or DataLoader of batches. What the model
            does not take, such as a target, is left out. None: not measured.

    Returns:
        A QuantizationReport, which prints as a table.

    Raises:
        TypeError: an argument is not an nn.Module or a Forecaster.
        ValueError: the two models have different weights, or no output is a floating-point Tensor.

    Example:
        >>> import torch
        >>> from torchcommodity import optimize
        >>> model = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.LayerNorm(8))
        >>> print(optimize.quantization_report(model, optimize.quantize(model)))
        weight    bytes before  bytes after  result
        0.weight           512          160  int8
        0.bias              32           32  one axis: a bias or a scale
        1.weight            32           32  one axis: a bias or a scale
        1.bias              32           32  one axis: a bias or a scale
        total              608          256
    """
    # a parametrized weight is listed after the plain ones of its layer, so the order is that of the model before
    before = list_weights(copy_without_masks(model))
    after = {weight.name: weight for weight in list_weights(module_of(quantized))}
    if {weight.name for weight in before} != set(after):
        rule = "quantized must be quantize(model), with the same weights"
        raise_invalid("quantization_report", rule, quantized=sorted(after))
    rows = tuple(
        QuantizedWeight(
            weight.name,
            stored_bytes(weight),
            stored_bytes(after[weight.name]),
            "" if is_int8(after[weight.name]) else reason_not_quantized(weight) or "not quantized",
        )
        for weight in before
    )
    if example is None:
        return QuantizationReport(rows, None, None)
    batches = _batches(example)
    outputs, expected = (_outputs(module_of(x), batches) for x in (quantized, model))
    difference = (outputs - expected)[expected.isfinite()]
    relative = difference.norm() / expected[expected.isfinite()].norm().clamp(min=1e-30)
    return QuantizationReport(rows, difference.abs().max().item(), relative.item())


def _batches(example: object) -> list[object]:
    """The batches of a list or a DataLoader; anything else is one batch."""
    if isinstance(example, ModelInputs):
        return [example.batch()]
    if isinstance(example, Tensor | tuple | Mapping) or not isinstance(example, Iterable):
        return [example]
    batches = list(example)
    if not batches:
        raise_empty("example")
    return batches


@torch.no_grad()
def _outputs(module: nn.Module, batches: list[object]) -> Tensor:  # (M,)
    """All floating-point outputs of a module in evaluation mode."""
    operation = "quantization_report"
    with restored_mode(module), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # a model that samples draws the same numbers before and after
        module.eval()
        values = [call_model(module, split_inputs(module, batch, None)[0]) for batch in batches]
    outputs = [x for _, x in named_tensors(values)]
    tensors = [x.cpu().double().flatten() for x in outputs if x.is_floating_point()]
    if not tensors:
        raise_invalid(operation, "the model must return a floating-point Tensor", outputs=len(outputs))
    return torch.cat(tensors)
