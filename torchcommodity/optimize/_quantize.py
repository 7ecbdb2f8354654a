"""Weights in fewer bytes: int8 by torchao and `nn.to_int8`, or bfloat16."""

import copy
import logging
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from torchcommodity.forecast import Forecaster
from torchcommodity.nn import recurrent_weights, to_int8


def quantize(forecaster: Forecaster) -> Forecaster:
    """Store the network's matrices as int8 with one scale per row; biases and the econometric part keep their dtype.

    Linear layers are quantized by torchao's `Int8WeightOnlyConfig`, recurrent layers, which torchao does not support,
    by `nn.to_int8`. Both are stored in one form, so that reading the forecaster's file does not need torchao. Weights
    are dequantized when used: this saves bytes, not multiplications.

    Args:
        forecaster: with a network.

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
    for name in ("torchao", "torch.utils._pytree"):  # their import lists kernels of other platforms otherwise
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
        forecaster: with a network in floating point.
        dtype: torch.bfloat16, the only one supported.

    Raises:
        ValueError: another dtype, or weights already in int8.
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
