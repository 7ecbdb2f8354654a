"""Operators of any other make, judged by the same rows: what they never promised is skipped, what they refuse is told.

A `torch.library.custom_op` or `triton_op`, an operator of `TORCH_LIBRARY`, an `autograd.Function`, a plain function.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.autograd.gradcheck import GradcheckError

from torchcommodity.opkit._cases import Cases, Sample
from torchcommodity.opkit._check.rows import Row
from torchcommodity.opkit._check.subject import Skip, Subject

GUESSES: dict[str, Any] = {"int": 3, "float": 0.5, "bool": False, "SymInt": 3}
# promises that only the records of this kit make
OURS = {
    "pickled", "derived_jvp", "half", "autocast", "nan_gradient", "no_batch", "batch_axes", "bad_input", "meta",
    "traced",
}  # fmt: skip
# rows in which an error is a refusal in the open; a wrong number is still a failure
OPEN = {
    "forward_mode", "func_grad", "vmap", "jacrev", "jacfwd", "hessian", "per_sample_gradients", "compile_forward",
    "compile_backward", "compile_shapes", "compile_func_grad", "export", "export_strict", "aot_inductor", "onnx",
    "threads", "gradgradcheck",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Foreign:
    """It looks to the rows as a record of ours does."""

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
        found = _overload(self.function)
        named = getattr(self.function, "__self__", self.function)  # a Function is called by its `apply`
        return str(found._name) if found else str(getattr(named, "__name__", type(self.function).__name__))

    @property
    def overload(self) -> Any:
        found = _overload(self.function)
        if found is None:
            raise Skip("it is no operator of the dispatcher: PyTorch knows no schema of it")
        return found

    @property
    def plain(self) -> bool:
        """Whether PyTorch's dispatcher has never heard of it."""
        return _overload(self.function) is None

    def warmup(self, *_: Any) -> int:
        return 0

    @cached_property
    def backward(self) -> bool:
        """Whether it can be differentiated: a gradient comes back from what it gives."""
        sample = self.cases().samples[0]
        leaves: list[Any] = [_leaf(x) for x in sample.tensors]
        outputs = self.cases().function(*leaves, **sample.settings)
        listed = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        attached = [y.sum() for y in listed if isinstance(y, Tensor) and y.requires_grad]
        try:
            torch.autograd.grad(attached, [x for x in leaves if _floating(x)], allow_unused=True)
        except RuntimeError as error:
            if "no autograd formula was registered" not in str(error):
                raise
            return False
        return bool(attached)


def foreign(operator: Any, cases: Cases | None) -> Foreign:
    """Wrap anything that can be called; without cases its samples are guessed from its signature, and tried."""
    function = called(operator)
    if not callable(function):
        raise TypeError(f"check: expected an operator, or anything that can be called; got {type(operator).__name__}")
    made = cases or _guessed(operator, function)
    return Foreign(function, lambda: made)


def called(operator: Any) -> Any:
    """What is called with tensors: of an `autograd.Function` its `apply`."""
    return operator.apply if _is_function(operator) else operator


def as_foreign(row: Row) -> Row:
    """The row as it is judged on an operator of another make."""

    def judge(subject: Subject) -> None:
        if row.name in OURS:
            raise Skip("only a record of this kit promises it")
        if row.name == "autograd" and not subject.op.backward:
            raise Skip("it has no gradient, and says so when one is asked for")
        try:
            row.judge(subject)
        except (AssertionError, GradcheckError, Skip):
            raise
        except Exception as error:
            if row.name not in OPEN:
                raise
            raise Skip(f"it refuses: {type(error).__name__}: {' '.join(str(error).split())[:200]}") from error

    return replace(row, judge=judge)


def _is_function(operator: Any) -> bool:
    return isinstance(operator, type) and issubclass(operator, torch.autograd.Function)


def _overload(function: Any) -> Any:
    if isinstance(function, torch._ops.OpOverloadPacket):
        return getattr(function, function.overloads()[0])
    return function if isinstance(function, torch._ops.OpOverload) else getattr(function, "_opoverload", None)


def _leaf(x: Any) -> Any:
    return x.detach().clone().requires_grad_() if _floating(x) else x


def _floating(x: Any) -> bool:
    return isinstance(x, Tensor) and x.is_floating_point()


def _guessed(operator: Any, function: Callable[..., Any]) -> Cases:
    values = [GUESSES.get(kind) for kind in _required(operator)]
    generator = torch.Generator().manual_seed(0)
    tensors = [0.5 + torch.rand(3, 4, 5, dtype=torch.double, generator=generator) for value in values if value is None]

    def door(*given: Tensor) -> Any:
        supply = iter(given)
        return function(*[next(supply) if value is None else value for value in values])

    try:
        door(*tensors)
    except Exception as error:
        shapes = ", ".join(str(tuple(x.shape)) for x in tensors)
        raise ValueError(
            f"check: guessed samples {shapes} do not fit: {error}; give your own: check(op, cases=[Sample(x, ...)])"
        ) from error
    return Cases(function=door, samples=(Sample(*tensors),))


def _required(operator: Any) -> list[str]:
    """The kinds of the arguments without a default: "Tensor", "int", ..., and "" where nothing is said."""
    found = _overload(operator)
    if found is not None:
        return [str(a.type) for a in found._schema.arguments if not a.has_default_value()]
    described = operator.forward if _is_function(operator) else operator
    try:
        parameters = list(inspect.signature(described).parameters.values())
    except ValueError as error:
        raise ValueError(f"check: {error}; give samples: check(op, cases=[Sample(x, ...)])") from error
    if _is_function(operator) and operator.setup_context is torch.autograd.Function.setup_context:
        parameters = parameters[1:]  # ctx
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    asked = [p for p in parameters if p.default is p.empty and p.kind in plain]
    return [getattr(p.annotation, "__name__", str(p.annotation)) for p in asked]
