"""Parameters (..., N) of the volatility models, and small panel helpers that their formulas share."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from torch_opkit.arguments import as_parameter, check_panel, check_values, raise_invalid

Parameter = Tensor | float | None


def check_parameters(
    operator: str,
    initialize: Callable[..., tuple[Tensor, dict[str, Tensor]]],
    returns: Tensor,
    omega: Parameter,
    alpha: Parameter,
    beta: Parameter,
    gamma: Parameter,
    initial: Parameter,
) -> list[Tensor]:
    """omega, alpha, beta, gamma and the value before the first return, (..., N) each, checked.

    `initialize` computes that value from the parameters, and for each rule the series (..., N) that satisfy it.
    """
    check_panel(operator, returns=returns)
    arguments = {"omega": omega, "alpha": alpha, "beta": beta, "gamma": 0.0 if gamma is None else gamma}
    arguments["initial"] = initial
    shape = (*returns.shape[:-2], returns.shape[-1])
    tensors = {
        name: broadcast_parameter(operator, name, x, "(..., N)", shape, returns=returns)
        for name, x in arguments.items()
        if x is not None
    }
    start, rules = initialize(**tensors)
    valid = check_values(operator, rules, **arguments, returns=returns)
    return [*list(tensors.values())[:4], torch.where(valid, start, torch.nan)]


def broadcast_parameter(
    operator: str, name: str, value: Tensor | float, axes: str, shape: Sequence[int], **panel: Tensor
) -> Tensor:
    """`value` in the `shape` that the message calls `axes`, such as "(..., N)", on the device of the panel.

    At least float32: float16 cannot hold a daily variance.
    """
    (like,) = panel.values()
    if not isinstance(value, (Tensor, float, int)):
        raise_invalid(operator, f"{name} must be a number or a Tensor {axes}", TypeError, **{name: value})
    tensor = as_parameter(value, torch.promote_types(like.dtype, torch.float32), like.device)
    try:
        return tensor.expand(shape)
    except RuntimeError:
        raise_invalid(operator, f"{name} must broadcast to {axes}", **{name: value}, **panel)


def float64_constant(like: Tensor, number: float) -> Tensor:
    """`number` in full precision, also after ONNX export, which stores Python floats as float32: as a sum of two."""
    rounded = float(np.float32(number))
    return torch.full_like(like, rounded) + (number - rounded)
