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
    return [*list(tensors.values())[:4], start if valid is None else torch.where(valid, start, torch.nan)]


def non_negative(**quantities: Tensor) -> dict[str, Tensor]:
    """For each quantity (..., N) the rule that it is >= 0, and where it holds, by one comparison of all."""
    holds = (torch.stack(list(quantities.values())) >= 0).unbind(0)
    return {f"{name} must be >= 0": condition for name, condition in zip(quantities, holds)}


def broadcast_parameter(
    operator: str, name: str, value: Tensor | float, axes: str, shape: Sequence[int], **panel: Tensor
) -> Tensor:
    """`value` in the `shape` that the message calls `axes`, such as "(..., N)", on the device of the panel.

    At least float32: float16 cannot hold a daily variance.
    """
    (like,) = panel.values()
    if not isinstance(value, (Tensor, float, int)):
        raise_invalid(operator, f"{name} must be a number or a Tensor {axes}", TypeError, **{name: value})
    dtype = torch.float64 if like.dtype == torch.float64 else torch.float32
    tensor = as_parameter(value, dtype, like.device)
    try:
        return tensor.expand(shape)
    except RuntimeError:
        raise_invalid(operator, f"{name} must broadcast to {axes}", **{name: value}, **panel)


def float64_constant(like: Tensor, number: float) -> Tensor:
    """`number` in full precision, also after ONNX export, which stores Python floats as float32: as a sum of two."""
    rounded = float(np.float32(number))
    return torch.full_like(like, rounded) + (number - rounded)
