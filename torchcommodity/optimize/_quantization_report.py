"""What quantization did to every weight of a model, and to its outputs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from torchcommodity.forecast import Forecaster
from torchcommodity.opkit.arguments import operation, raise_invalid
from torchcommodity.optimize._batches import raise_empty, split_inputs
from torchcommodity.optimize._calls import call_model
from torchcommodity.optimize._masks import copy_without_masks
from torchcommodity.optimize._module import module_of, restored_mode
from torchcommodity.optimize._quantize import is_int8, reason_not_quantized, stored_bytes
from torchcommodity.optimize._steps import named_tensors
from torchcommodity.optimize._table import format_table
from torchcommodity.optimize._weights import list_weights
from torchcommodity.training import ModelInputs


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
