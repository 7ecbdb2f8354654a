"""What PyTorch has for Apple's GPUs and the CPU kernels behind the device "single" have not, or do otherwise."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torchgen
from torch import Tensor

aten = torch.ops.aten


@cache
def _entries() -> dict[str, str]:
    """PyTorch's own table of operators, by name."""
    text = (Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml").read_text()
    return {entry[: entry.index("(")]: entry for entry in text.split("\n- func: ")[1:]}


@cache
def has_mps_kernel(operator: str) -> bool:
    """Whether PyTorch lists a kernel for MPS, or composes the operator of others."""
    entry = _entries()[operator]
    if delegate := re.search(r"structured_delegate: (\S+)", entry):
        return has_mps_kernel(delegate[1])
    dispatch = re.search(r"\n  dispatch:\n((?:    .*\n?)+)", entry)
    return dispatch is None or bool(re.search(r"\bMPS\b|\bComposite", dispatch[1]))


def _cumsum(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Sums in the type of the result; PyTorch's kernel for the CPU adds float32 in float64."""
    x = x if dtype is None else x.to(dtype)
    return aten.cumsum(x, dim) if not x.is_floating_point() else torch.from_numpy(np.cumsum(x.numpy(), dim))


def _lstm_cell(
    input_gates: Tensor,  # (B, 4 H)
    hidden_gates: Tensor,  # (B, 4 H)
    c: Tensor,  # (B, H)
    input_bias: Tensor | None = None,  # (4 H,)
    hidden_bias: Tensor | None = None,  # (4 H,)
) -> tuple[Tensor, Tensor, Tensor]:
    """A step of `torch.nn.LSTM`, which MPS runs as one kernel over all steps."""
    gates = sum((x for x in (hidden_gates, input_bias, hidden_bias) if x is not None), input_gates)
    i, f, g, o = gates.chunk(4, -1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    new_c = f * c + i * g
    return o * new_c.tanh(), new_c, torch.cat([i, f, g, o], -1)


def _lstm_cell_backward(
    grad_h: Tensor | None, grad_c: Tensor | None, c: Tensor, new_c: Tensor, gates: Tensor, has_bias: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the gates before their functions, of c, and of a bias."""
    i, f, g, o = gates.chunk(4, -1)
    d_h = torch.zeros_like(c) if grad_h is None else grad_h
    d_c = d_h * o * (1 - new_c.tanh().square()) + (0 if grad_c is None else grad_c)
    d_gates = (d_c * g * i * (1 - i), d_c * c * f * (1 - f), d_c * i * (1 - g * g), d_h * new_c.tanh() * o * (1 - o))
    d_all = torch.cat(d_gates, -1)
    return d_all, d_c * f, d_all.sum(0) if has_bias else d_all.new_empty(0)


def _zeros(size: list[int], **options: Any) -> Tensor:
    """Zeros in memory; a zero without memory can only stand for itself, and not behind a tensor of another device."""
    return aten.zeros(size, **options)


KERNELS: dict[Any, Callable[..., Any]] = {
    aten._efficientzerotensor.default: _zeros,
    aten.cumsum.default: _cumsum,
    aten._thnn_fused_lstm_cell.default: _lstm_cell,
    aten._thnn_fused_lstm_cell_backward_impl.default: _lstm_cell_backward,
}
