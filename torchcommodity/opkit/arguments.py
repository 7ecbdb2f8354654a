"""The checks at the door of an operator, and the words in which they refuse."""

from typing import Any, NoReturn

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

from torchcommodity.opkit._torch_private import transforms_active

__all__ = ["check_integer", "check_panel", "check_values", "raise_invalid"]


def raise_invalid(operator: str, expected: str, error: type[Exception] = ValueError, /, **received: Any) -> NoReturn:
    """Raise `operator: expected; got window=60 with returns (3, 40, 5)`: settings first, then the shapes."""
    settings = [f"{name}={value!r}" for name, value in received.items() if not isinstance(value, Tensor)]
    shapes = [f"{name} {tuple(value.shape)}" for name, value in received.items() if isinstance(value, Tensor)]
    got = " with ".join(filter(None, [", ".join(settings), ", ".join(shapes)]))
    raise error(f"{operator}: {expected}; got {got}")


def check_panel(operator: str, **panels: Tensor) -> None:
    """Each is a floating-point Tensor (..., T, N), and all are of one dtype and on one device."""
    for name, x in panels.items():
        if not isinstance(x, Tensor):
            raise_invalid(operator, f"{name} must be a Tensor (..., T, N)", TypeError, **{name: type(x).__name__})
        if not x.is_floating_point():
            raise_invalid(operator, f"{name} must be of floating point", TypeError, dtype=x.dtype, **{name: x})
        if x.dim() < 2:
            raise_invalid(operator, f"{name} must be (..., T, N)", **panels)
    if len({(x.dtype, x.device) for x in panels.values()}) > 1:
        kinds = {f"{name}_is": f"{x.dtype} on {x.device}" for name, x in panels.items()}
        raise_invalid(operator, "all tensors must be of one dtype and on one device", TypeError, **kinds)


def check_integer(operator: str, least: int, *, most: int | None = None, **settings: Any) -> None:
    """Each setting is an int in [least, most]; a bool is none."""
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise_invalid(operator, f"{name} must be an int", TypeError, **{name: value})
        if value < least or (most is not None and value > most):
            bounds = f">= {least}" if most is None else f"in [{least}, {most}]"
            raise_invalid(operator, f"{name} must be {bounds}", **{name: value})


def check_values(operator: str, rules: dict[str, Tensor], **received: Any) -> Tensor:
    """Where every rule holds. Refuses the first that does not, if values can be read.

    They cannot under `torch.compile`, `torch.export`, `torch.func` and on the meta device: there the caller makes NaN
    of what is not valid, so that nothing is silently wrong.
    """
    valid = torch.stack(list(rules.values())).all(0)
    if torch.compiler.is_compiling() or transforms_active() or valid.is_meta or isinstance(valid, FakeTensor):
        return valid
    if not valid.all():
        raise_invalid(operator, next(words for words, holds in rules.items() if not holds.all()), **received)
    return valid
