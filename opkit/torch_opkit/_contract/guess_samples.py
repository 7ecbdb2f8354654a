"""Samples for an operator that comes without any: several forms are tried, the first that works is taken."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor

from torch_opkit._cases import Sample
from torch_opkit._contract.invocation import run_once
from torch_opkit._contract.signature import REQUIRED, Parameter, TensorList
from torch_opkit._contract.support import find_cause

SCALAR_VALUES: dict[str, Any] = {"int": 3, "float": 0.5, "bool": False}
INTEGER_NAMES = ("window", "period", "span", "lag", "lags", "order", "steps", "size", "n", "k", "horizon", "groups")
FLOAT_NAMES = (
    "alpha", "beta", "gamma", "decay", "rate", "scale", "factor", "eps", "momentum", "threshold", "temperature",
    "halflife", "tau", "p", "q", "lam",
)  # fmt: skip
AXIS_NAMES = ("dim", "axis")
INDEX_NAMES = ("index", "indices", "idx", "ids", "labels", "positions")
MASK_NAMES = ("mask", "where", "condition")
# Shapes of the first, second, third and fourth tensor; the last one is repeated.
FORMS: tuple[tuple[tuple[int, ...], ...], ...] = (
    ((2, 11, 3),),
    ((2, 11, 3), (4, 3), (4,)),
    ((2, 11, 3), (3, 4), (4,)),
    ((2, 11, 3), (3,)),
    ((5, 4), (4, 3), (3,)),
    ((11, 3),),
    ((11, 3), (3,)),
    ((4, 4),),
    ((2, 4, 4),),
    ((11,),),
    ((2, 3, 8, 9), (4, 3, 3, 3), (4,)),
    ((2, 3, 11), (4, 3, 3), (4,)),
    ((),),
)
VALUES: dict[str, Callable[[Tensor], Tensor]] = {
    "positive numbers": lambda uniform: 0.5 + uniform,
    "numbers between 0.1 and 0.9": lambda uniform: 0.1 + 0.8 * uniform,
    "numbers around zero": lambda uniform: 4 * uniform - 2,
}


class NoSample(Exception):  # noqa: N818  # becomes a ValueError that shows an example
    """No guessed sample works; the message is the first error."""


def guess_sample(function: Callable[..., Any], parameters: Sequence[Parameter], state: Sequence[Tensor]) -> Sample:
    """The first guessed sample on which `function` runs, and if possible gives finite numbers only.

    Raises:
        NoSample: it runs on none.
    """
    first_error: Exception | None = None
    fallback = None
    forms = (*_forms_of_module(state), *FORMS)
    for roles, form, values in product(_roles(parameters), forms, VALUES.values()):
        sample = _make_candidate(roles, form, values)
        try:
            outputs = run_once(function, Sample(*sample.tensors, *state, **sample.settings))
        except Exception as error:
            if find_cause(error):
                return sample
            first_error = first_error or error
            continue
        fallback = fallback or sample
        if outputs and all(bool(y.isfinite().all()) for y in outputs) and any(y.numel() for y in outputs):
            return sample
    if fallback is None:
        raise NoSample(f"{type(first_error).__name__}: {first_error}") from first_error
    return fallback


def _forms_of_module(state: Sequence[Tensor]) -> list[tuple[tuple[int, ...], ...]]:
    """Forms whose last axis, or channels, fit the first weights of a module."""
    weights = [x for x in state if x.dim() >= 2][:2] or list(state[:1])
    forms: list[tuple[tuple[int, ...], ...]] = []
    for weight in weights:
        if weight.dim() > 2:
            forms += [((2, channels, 11, 10, 9)[: weight.dim()],) for channels in (weight.shape[1], weight.shape[0])]
        forms += [((2, 11, width),) for width in dict.fromkeys((*weight.shape[-1:], *weight.shape[:1]))]
        forms += [((5, width),) for width in dict.fromkeys((*weight.shape[-1:], *weight.shape[:1]))]
    return forms


def _roles(parameters: Sequence[Parameter]) -> list[list[tuple[Parameter, Any]]]:
    """What each parameter receives: "tensor", "tensors", "index", "mask", or a number; several readings."""
    if parameters and parameters[0].unnamed:
        return [[(p, "tensor") for p in parameters[:count]] for count in (1, 2, 3)]
    used = [p for p in parameters if p.required or p.is_setting or (p.variadic and len(parameters) == 1)]
    if not any(p.required or p.variadic for p in used):  # such as `def f(x=None)`
        used = [p for p in parameters if p.kind == "unknown"][:1] + used
    likely = [(p, _likely_role(p)) for p in used]
    readings = [likely]
    unknown = [i for i, (p, role) in enumerate(likely) if p.kind == "unknown" and i > 0 and role == "tensor"]
    for number in (3, 0.5):
        readings.append([(p, number if i in unknown else role) for i, (p, role) in enumerate(likely)])
    indices = [(p, "index" if role == "tensor" else role) for p, role in likely]
    last = max((i for i, (_, role) in enumerate(likely) if role == "tensor"), default=0)
    readings.append([(p, "index" if i == last else role) for i, (p, role) in enumerate(likely)])
    readings.append(indices)
    return [reading for i, reading in enumerate(readings) if reading not in readings[:i]]


def _likely_role(p: Parameter) -> Any:
    if p.default is not REQUIRED and p.is_setting:
        return p.default
    if p.kind in SCALAR_VALUES:
        return -1 if p.kind == "int" and p.name in AXIS_NAMES else SCALAR_VALUES[p.kind]
    if p.kind == "tensors":
        return "tensors"
    if p.name in INDEX_NAMES:
        return "index"
    if p.name in MASK_NAMES:
        return "mask"
    if p.kind == "unknown":
        numbers = {
            **dict.fromkeys(INTEGER_NAMES, 3),
            **dict.fromkeys(FLOAT_NAMES, 0.5),
            **dict.fromkeys(AXIS_NAMES, -1),
        }
        return numbers.get(p.name, "tensor")
    return "tensor" if p.kind == "tensor" else None


def _make_candidate(
    roles: Sequence[tuple[Parameter, Any]], form: Sequence[tuple[int, ...]], values: Callable[[Tensor], Tensor]
) -> Sample:
    generator = torch.Generator().manual_seed(0)
    tensors: list[Tensor] = []
    settings: dict[str, Any] = {}

    def make() -> Tensor:
        shape = form[min(len(tensors), len(form) - 1)]
        return values(torch.rand(shape, dtype=torch.double, generator=generator))

    for p, role in roles:
        if role == "tensors":
            tensors += [make(), make()]
            settings[p.name] = TensorList(2)
        elif role == "index":
            tensors.append(torch.randint(3, make().shape, generator=generator))
        elif role == "mask":
            tensors.append(torch.rand(make().shape, generator=generator) < 0.5)
        elif role == "tensor":
            tensors.append(make())
        else:
            settings[p.name] = role
    return Sample(*tensors, **settings)
