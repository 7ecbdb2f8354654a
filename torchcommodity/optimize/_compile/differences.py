"""Differences between the outputs of two runs."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from torchcommodity.optimize._compile.result import OutputDifference
from torchcommodity.optimize._steps import named_tensors

Outputs = Mapping[str, Tensor]


def copy_outputs(outputs: Any) -> dict[str, Tensor]:
    """Copies of the tensors in outputs by name; the next run of a CUDA graph overwrites the tensors themselves."""
    return {name or "output": _flat(x.detach()).clone() for name, x in named_tensors(outputs)}


def _flat(x: Tensor) -> Tensor:
    """A nested tensor as the values of its parts; others unchanged."""
    return torch.cat([part.flatten() for part in x.unbind()]) if x.is_nested else x


def differences(expected: Outputs, actual: Outputs) -> tuple[OutputDifference, ...]:
    """Absolute and relative difference of every output, largest first."""
    rows = [_difference(name, x, actual.get(name)) for name, x in expected.items()]
    return tuple(sorted(rows, key=lambda row: -row.absolute))


def _difference(name: str, expected: Tensor, actual: Tensor | None) -> OutputDifference:
    infinite = OutputDifference(name, float("inf"), float("inf"))
    if actual is None or actual.shape != expected.shape or actual.dtype != expected.dtype:
        return infinite
    x, y = (_to_double(value) for value in (expected, actual))
    special = ~torch.isfinite(x)
    if not torch.equal(special, ~torch.isfinite(y)) or not torch.equal(_text(x[special]), _text(y[special])):
        return infinite
    absolute = float((x - y)[~special].abs().max()) if (~special).any() else 0.0
    scale = float(x[~special].abs().max()) if (~special).any() else 0.0
    return OutputDifference(name, absolute, absolute / scale if scale else absolute)


def _to_double(x: Tensor) -> Tensor:
    x = (x.to_dense() if x.layout != torch.strided else x).cpu()  # not every device has float64
    return torch.view_as_real(x.to(torch.complex128)) if x.is_complex() else x.double()


def _text(x: Tensor) -> Tensor:
    """NaN, inf and -inf as numbers that compare equal to themselves."""
    return torch.nan_to_num(x, nan=2.0, posinf=1.0, neginf=-1.0)
