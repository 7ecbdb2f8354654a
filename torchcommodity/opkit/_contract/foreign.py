"""Checks of operators without a record: `custom_op`, `triton_op`, `TORCH_LIBRARY`, `autograd.Function`, functions.

They run the same checks as records. What only records guarantee is skipped; a feature that raises is reported as
skipped, with the error; a wrong result is a failure.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from torchcommodity.opkit._cases import Cases, Sample
from torchcommodity.opkit._contract.case import SkipCheck, as_tuple

DEFAULTS: dict[str, Any] = {"int": 3, "float": 0.5, "bool": False, "SymInt": 3}  # None or absent: a random Tensor


@dataclass(frozen=True, eq=False)
class ForeignOp:
    """An operator without a record, with the attributes of `Op` that checks read."""

    function: Callable[..., Any]
    cases: Callable[[], Cases]
    jvp = decomposition = None
    time = None
    causal = native = False
    vmap = "loop"

    @property
    def name(self) -> str:
        return self.qualified_name.split("::")[-1]

    @cached_property
    def qualified_name(self) -> str:
        if overload := _find_overload(self.function):
            return str(overload._name)
        owner = getattr(self.function, "__self__", self.function)  # an autograd.Function is called by its `apply`
        return str(getattr(owner, "__name__", type(self.function).__name__))

    @property
    def overload(self) -> Any:
        overload = _find_overload(self.function)
        if overload is None:
            raise SkipCheck("not registered with PyTorch's dispatcher: it has no schema")
        return overload

    @property
    def plain(self) -> bool:
        """Whether it is not registered with PyTorch's dispatcher."""
        return _find_overload(self.function) is None

    def warmup(self, *_: Any) -> int:
        return 0

    @cached_property
    def backward(self) -> bool:
        """Whether it is differentiable: an output requires a gradient, and has an autograd formula."""
        sample = self.cases().samples[0]
        leaves: list[Any] = [_as_leaf(x) for x in sample.tensors]
        outputs = as_tuple(self.cases().function(*leaves, **sample.settings))
        sums = [y.sum() for y in outputs if isinstance(y, Tensor) and y.requires_grad]
        try:
            torch.autograd.grad(sums, [x for x in leaves if _is_floating(x)], allow_unused=True)
        except RuntimeError as error:
            if "no autograd formula was registered" not in str(error):
                raise
            return False
        return bool(sums)


def wrap_foreign(operator: Any, cases: Cases | None) -> ForeignOp:
    """Wrap a callable; without cases, guess a sample from its signature and try it."""
    function = as_callable(operator)
    if not callable(function):
        raise TypeError(f"check: op must be an operator or a callable; got {type(operator).__name__}")
    cases = cases or _guess_cases(operator, function)
    return ForeignOp(function, lambda: cases)


def as_callable(operator: Any) -> Any:
    """The function to call with tensors: for an `autograd.Function`, its `apply`."""
    return operator.apply if _is_autograd_function(operator) else operator


def _is_autograd_function(operator: Any) -> bool:
    return isinstance(operator, type) and issubclass(operator, torch.autograd.Function)


def _find_overload(function: Any) -> Any:
    if isinstance(function, torch._ops.OpOverloadPacket):
        return getattr(function, function.overloads()[0])
    return function if isinstance(function, torch._ops.OpOverload) else getattr(function, "_opoverload", None)


def _as_leaf(x: Any) -> Any:
    return x.detach().clone().requires_grad_() if _is_floating(x) else x


def _is_floating(x: Any) -> bool:
    return isinstance(x, Tensor) and x.is_floating_point()


def _guess_cases(operator: Any, function: Callable[..., Any]) -> Cases:
    values = [DEFAULTS.get(kind) for kind in _required_types(operator)]
    generator = torch.Generator().manual_seed(0)
    tensors = [0.5 + torch.rand(3, 4, 5, dtype=torch.double, generator=generator) for value in values if value is None]

    def call(*tensors: Tensor) -> Any:
        remaining = iter(tensors)
        return function(*[next(remaining) if value is None else value for value in values])

    try:
        call(*tensors)
    except Exception as error:
        shapes = ", ".join(str(tuple(x.shape)) for x in tensors)
        raise ValueError(
            f"check: guessed samples {shapes} do not work: {error}; pass samples: check(op, cases=[Sample(x, ...)])"
        ) from error
    return Cases(function=call, samples=(Sample(*tensors),))


def _required_types(operator: Any) -> list[str]:
    """Types of the arguments without a default: "Tensor", "int", ...; "" without an annotation."""
    overload = _find_overload(operator)
    if overload is not None:
        return [str(a.type) for a in overload._schema.arguments if not a.has_default_value()]
    is_autograd_function = _is_autograd_function(operator)
    try:
        signature = inspect.signature(operator.forward if is_autograd_function else operator)
    except ValueError as error:
        raise ValueError(f"check: {error}; pass samples: check(op, cases=[Sample(x, ...)])") from error
    parameters = list(signature.parameters.values())
    if is_autograd_function and operator.setup_context is torch.autograd.Function.setup_context:
        parameters = parameters[1:]  # ctx
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [p for p in parameters if p.default is p.empty and p.kind in positional]
    return [getattr(p.annotation, "__name__", str(p.annotation)) for p in required]
