"""Smaller weights: int8 with torchao and `nn.to_int8`, or bfloat16."""

import copy
import logging
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from torchcommodity.forecast import Forecaster
from torchcommodity.nn import recurrent_weights, to_int8


def quantize(forecaster: Forecaster) -> Forecaster:
    """Quantize the network's weight matrices to int8 with one scale per row.

    Linear layers are quantized by torchao's `Int8WeightOnlyConfig`, recurrent layers, which torchao does not support,
    by `nn.to_int8`. Both are stored in the same form, so that loading the forecaster does not require torchao. Weights
    are dequantized on use: this saves bytes, not multiplications. Biases and the econometric part keep their dtype.

    Args:
        forecaster: forecaster with a network.

    Returns:
        A forecaster with int8 weights, which cannot be trained.

    Raises:
        ImportError: torchao is not installed; `pip install 'torchcommodity[quantize]'`.
    """
    model = copy.deepcopy(forecaster.model)
    for layer, name in recurrent_weights(model):
        to_int8(layer, name)
    for linear in [layer for layer in model.modules() if type(layer) is nn.Linear]:
        values, scale = torchao_int8(linear)
        to_int8(linear, "weight")
        parametrization: Any = linear.get_submodule("parametrizations.weight")
        parametrization.original0.copy_(values)
        parametrization.original1.data.copy_(scale)
    return replace(forecaster, model=model.eval())


def torchao_int8(linear: nn.Linear) -> tuple[Tensor, Tensor]:  # (out, in) int8, (out, 1)
    """Weight and scale of a linear layer as quantized by torchao."""
    for name in ("torchao", "torch.utils._pytree"):  # silences messages about kernels of other platforms
        logging.getLogger(name).setLevel(logging.ERROR)
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    container = nn.Sequential(copy.deepcopy(linear))
    quantize_(container, Int8WeightOnlyConfig(version=2))
    weight: Any = container[0].weight
    return weight.qdata, weight.scale


def mixed_precision(forecaster: Forecaster, dtype: torch.dtype = torch.bfloat16) -> Forecaster:
    """Store and run the network in bfloat16 and the econometric part, which subtracts large numbers, in float64.

    Recurrent layers take bfloat16 and compute in float32 internally.

    Args:
        forecaster: forecaster with a floating-point network.
        dtype: torch.bfloat16, the only supported dtype.

    Returns:
        A forecaster with a bfloat16 network.

    Raises:
        ValueError: another dtype, or int8 weights.
    """
    if dtype != torch.bfloat16:
        raise ValueError(f"mixed_precision: dtype must be torch.bfloat16; got {dtype}")
    model = copy.deepcopy(forecaster.model)
    if any(x.dtype == torch.int8 for x in model.state_dict().values()):
        raise ValueError("mixed_precision: forecaster must have a network in floating point; got int8 weights")
    for name, layer in model.named_children():
        if name != "har":
            layer.to(dtype)
    return replace(forecaster, model=model.eval())
