"""The checks at the door of an operator, and the words in which they refuse."""

import re
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
    """Mask of the series for which every rule holds; raise for the first rule that does not, if values can be read.

    `rules` maps what is expected ("omega must be >= 0") to where it holds. The error shows the arguments that the rule
    names, Tensors by their first invalid value. Values cannot be read under `torch.compile`, `torch.export`,
    `torch.func` and on the meta device: there the caller writes NaN where the mask is False.
    """
    valid = torch.stack(list(rules.values())).all(0)
    if torch.compiler.is_compiling() or transforms_active() or valid.is_meta or isinstance(valid, FakeTensor):
        return valid
    for expected, holds in rules.items():
        if not holds.all():
            raise_invalid(operator, expected, **_at_first_invalid(expected, holds, received))
    return valid


def _at_first_invalid(expected: str, holds: Tensor, received: dict[str, Any]) -> dict[str, Any]:
    """The arguments that `expected` names, Tensors (..., N) by their first invalid value, and the shapes of panels."""
    index = tuple((~holds).nonzero()[0].tolist())
    named = {name: x for name, x in received.items() if x is not None and re.search(rf"\b{name}\b", expected)}
    columns = {name: x for name, x in named.items() if isinstance(x, Tensor) and x.dim() <= holds.dim()}
    values = {name: float(f"{x.expand(holds.shape)[index].item():.6g}") for name, x in columns.items()}
    series = {"series": index[0] if len(index) == 1 else index} if values and index else {}
    panels = {name: x for name, x in received.items() if isinstance(x, Tensor) and x.dim() > holds.dim()}
    return named | values | series | panels
