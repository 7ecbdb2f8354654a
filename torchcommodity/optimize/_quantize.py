"""A forecaster whose weights take fewer bytes: int8 by torchao and by our own layers, or half precision."""

import copy
import logging
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from torchcommodity.forecast import Forecaster
from torchcommodity.nn import recurrent_weights, to_int8


def quantize(forecaster: Forecaster) -> Forecaster:
    """Store the network's matrices as int8 with a scale a row; biases and the econometric part stay as they are.

    The numbers of linear layers are those of torchao's `Int8WeightOnlyConfig`; recurrent layers, whose weights torchao
    leaves alone, take `nn.Int8`. Both are kept in one form, so that the forecaster's file needs no torchao to be read.
    Weights are made floating point where they are used: fewer bytes, no fewer multiplications.

    Raises:
        ImportError: torchao is not installed; `pip install 'torchcommodity[quantize]'`.
    """
    model = copy.deepcopy(forecaster.model)
    for layer, name in recurrent_weights(model):
        to_int8(layer, name)
    for linear in [layer for layer in model.modules() if type(layer) is nn.Linear]:
        numbers, scale = linear_numbers(linear)
        to_int8(linear, "weight")
        stored: Any = linear.get_submodule("parametrizations.weight")
        stored.original0.copy_(numbers)
        stored.original1.data.copy_(scale)
    return replace(forecaster, model=model.eval())


def linear_numbers(linear: nn.Linear) -> tuple[Tensor, Tensor]:  # (out, in) int8, (out, 1)
    """What torchao makes of a linear layer's weight."""
    for speaker in ("torchao", "torch.utils._pytree"):  # its import lists the kernels of other machines otherwise
        logging.getLogger(speaker).setLevel(logging.ERROR)
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    holder = nn.Sequential(copy.deepcopy(linear))
    quantize_(holder, Int8WeightOnlyConfig(version=2))
    weight: Any = holder[0].weight
    return weight.qdata, weight.scale


def mixed_precision(forecaster: Forecaster, dtype: torch.dtype = torch.bfloat16) -> Forecaster:
    """The network in half precision; the econometric part, where a small number is a difference of large ones, in full.

    Recurrent layers take half precision in and compute in float32 inside.

    Raises:
        ValueError: not bfloat16; weights already in int8.
    """
    if dtype != torch.bfloat16:
        raise ValueError(f"mixed_precision: dtype must be torch.bfloat16; got {dtype}")
    model = copy.deepcopy(forecaster.model)
    if any(x.dtype == torch.int8 for x in model.state_dict().values()):
        raise ValueError("mixed_precision: expected a network in floating point; got weights in int8")
    for name, layer in model.named_children():
        if name != "har":
            layer.to(dtype)
    return replace(forecaster, model=model.eval())
