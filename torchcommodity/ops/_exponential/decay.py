"""How fast an exponential average forgets, in pandas' four ways of saying it."""

from collections.abc import Callable

import torch
from torch import Tensor

from torchcommodity.opkit.arguments import check_integer, check_panel, check_values, raise_invalid

Speed = float | Tensor | None

# of each: alpha, the words for its range, and where it is in range
WAYS: dict[str, tuple[Callable[[Tensor], Tensor], str, Callable[[Tensor], Tensor]]] = {
    "com": (lambda c: 1 / (1 + c), "com must be >= 0", lambda c: c >= 0),
    "span": (lambda s: 2 / (1 + s), "span must be >= 1", lambda s: s >= 1),
    "halflife": (lambda h: -torch.expm1(-torch.log(h.new_tensor(2.0)) / h), "halflife must be > 0", lambda h: h > 0),
    "alpha": (lambda a: a, "alpha must be in (0, 1]", lambda a: (a > 0) & (a <= 1)),
}


def check_decay(
    operator: str, x: Tensor, com: Speed, span: Speed, halflife: Speed, alpha: Speed, min_periods: int
) -> tuple[Tensor, bool]:
    """alpha (..., N) for the panel x (..., T, N), and whether it was given by a Tensor, so that it may be learned."""
    check_panel(operator, x=x)
    check_integer(operator, 0, min_periods=min_periods)
    given = {"com": com, "span": span, "halflife": halflife, "alpha": alpha}
    named = {name: value for name, value in given.items() if value is not None}
    if len(named) != 1:
        raise_invalid(operator, "exactly one of com, span, halflife, alpha must be given", x=x, **named)
    ((name, value),) = named.items()
    speed = value.to(x) if isinstance(value, Tensor) else x.new_tensor(float(value), dtype=torch.double)
    rate, words, holds = WAYS[name]
    valid = check_values(operator, {words: holds(speed)}, x=x, **{name: value})
    found = torch.where(valid, rate(torch.where(valid, speed, 1)), torch.nan).to(x.dtype)
    try:
        return found.expand(*x.shape[:-2], x.shape[-1]), isinstance(value, Tensor)
    except RuntimeError:
        raise_invalid(operator, f"{name} must broadcast to (..., N)", x=x, **{name: value})
