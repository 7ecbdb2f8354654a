"""Decay of exponentially weighted averages: pandas' four parametrizations."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_opkit import Past
from torch_opkit.arguments import check_integer, check_panel, check_values, raise_invalid

Decay = float | Tensor | None


def _alpha_of_halflife(halflife: Any) -> Any:
    """1 - 2^(-1 / halflife), also where that is small."""
    if isinstance(halflife, Tensor):
        return -torch.expm1(-torch.log(halflife.new_full((), 2.0)) / halflife)
    return -math.expm1(-math.log(2) / halflife)


# for each parameter: its alpha, of a number or a Tensor; the error message, and where it is valid
PARAMETERS: dict[str, tuple[Callable[[Any], Any], str, Callable[[Any], Any]]] = {
    "com": (lambda c: 1 / (1 + c), "com must be >= 0", lambda c: c >= 0),
    "span": (lambda s: 2 / (1 + s), "span must be >= 1", lambda s: s >= 1),
    "halflife": (_alpha_of_halflife, "halflife must be > 0", lambda h: h > 0),
    "alpha": (lambda a: a, "alpha must be in (0, 1]", lambda a: (a > 0) & (a <= 1)),
}


def check_decay(
    operator: str, x: Tensor, com: Decay, span: Decay, halflife: Decay, alpha: Decay, min_periods: int
) -> tuple[Tensor, bool]:
    """Check the arguments; return alpha (..., N) and whether it comes from a Tensor, which may be learned."""
    check_panel(operator, x=x)
    check_integer(operator, 0, min_periods=min_periods)
    parameters = (("com", com), ("span", span), ("halflife", halflife), ("alpha", alpha))
    arguments = {name: value for name, value in parameters if value is not None}
    if len(arguments) != 1:
        raise_invalid(operator, "exactly one of com, span, halflife, alpha must be given", x=x, **arguments)
    ((name, value),) = arguments.items()
    to_alpha, expected, in_range = PARAMETERS[name]
    if not isinstance(value, Tensor):
        if not in_range(float(value)):
            raise_invalid(operator, expected, x=x, **{name: value})
        return x.new_full((), to_alpha(float(value))).expand(*x.shape[:-2], x.shape[-1]), False
    parameter = value.to(x)
    valid = check_values(operator, {expected: in_range(parameter)}, x=x, **{name: value})
    if valid is None:
        rate = to_alpha(parameter)
    else:
        rate = torch.where(valid, to_alpha(torch.where(valid, parameter, 1)), torch.nan)
    try:
        return rate.expand(*x.shape[:-2], x.shape[-1]), True
    except RuntimeError:
        raise_invalid(operator, f"{name} must broadcast to (..., N)", x=x, **{name: value})


def live_decay(
    past: Past,
    operator: str,
    x: Tensor,
    min_periods: int,
    com: Decay = None,
    span: Decay = None,
    halflife: Decay = None,
    alpha: Decay = None,
) -> Tensor:
    """alpha (..., N) of a live update, checked when it starts."""
    if (rate := past.get("rate")) is None:
        rate, _ = check_decay(operator, x, com, span, halflife, alpha, min_periods)
        rate = rate.clone(memory_format=torch.contiguous_format)
        past.keep("rate", rate)
    return rate
