"""One operator on one sample, with the ways to call it: what a check of the contract receives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from torch_opkit import _torch_private as private
from torch_opkit._cases import Cases, Sample
from torch_opkit._op import Op, is_floating

if TYPE_CHECKING:
    from torch_opkit._contract.foreign import ForeignOp

Tensors = tuple[Tensor, ...]


class SkipCheck(Exception):  # noqa: N818  # not an error
    """Raised by a check that does not apply; the message is the reason."""


class Fault(AssertionError):  # noqa: N818  # as AssertionError: a result, not an accident
    """A fault whose cause is known. `kind` identifies the cause, `fix` is the remedy for it, `location` file:line.

    A check that raises a plain AssertionError has found a fault too; then its own `fix` and name say what is known.
    """

    def __init__(self, kind: str, message: str, fix: str = "", location: str = "") -> None:
        super().__init__(message)
        self.kind, self.fix, self.location = kind, fix, location


class Redirect(TorchDispatchMode):
    """Dispatch mode that calls `function` in place of an operator, and keeps the arguments of each call in `calls`."""

    def __init__(self, overload: object, function: Callable[..., Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.overload, self.function, self.calls = overload, function, list[tuple[Any, ...]]()

    def __torch_dispatch__(self, func: Any, types: object, args: Any = (), kwargs: Any = None) -> Any:
        if func is not self.overload:
            return func(*args, **(kwargs or {}))
        self.calls.append(private.fill_defaults(self.overload._schema, args, kwargs or {})[0])
        return self.function(*self.calls[-1])


@dataclass(frozen=True, eq=False)
class Case:
    """One operator on one sample. Calls go through the public function, with the settings of the sample."""

    op: "Op | ForeignOp"
    cases: Cases
    sample: Sample
    selection: tuple[int, ...] | None = None  # indices of the outputs that are looked at; None: all

    def with_timed_outputs(self) -> "Case":
        """Only the outputs with a time axis; a final state, beside the rows of a recurrent network, has none."""
        return self if isinstance(self.op, Op) else replace(self, selection=self.op.timed_outputs)

    def _select(self, outputs: Tensors) -> Tensors:
        return outputs if self.selection is None else tuple(outputs[i] for i in self.selection if i < len(outputs))

    @property
    def tensors(self) -> tuple[Any, ...]:
        """Tensors of the sample; an optional one may be None."""
        return self.sample.tensors

    def with_tensors(self, tensors: Sequence[Any]) -> "Case":
        return replace(self, sample=Sample(*tensors, **self.sample.settings))

    def map_tensors(self, change: Callable[[Tensor], Tensor]) -> "Case":
        return self.with_tensors([change(x) if isinstance(x, Tensor) else x for x in self.tensors])

    def map_panels(self, change: Callable[[Tensor], Tensor]) -> "Case":
        return self.with_tensors([change(x) if i in self.panel_indices else x for i, x in enumerate(self.tensors)])

    def call(self, *tensors: object) -> Tensors:
        """Call the public function; always returns a tuple."""
        return self._select(as_tuple(self.cases.function(*(tensors or self.tensors), **self.sample.settings)))

    def call_reference(self, *tensors: object) -> Tensors:
        """Call the public function with the reference in place of the kernel; of a foreign operator, the reference."""
        if not isinstance(self.op, Op):
            if not self.op.reference:
                raise SkipCheck("there is no definition to compare with: pass reference=function")
            with torch.no_grad():
                return self._select(as_tuple(self.op.reference(*(tensors or self.tensors), **self.sample.settings)))
        with torch.no_grad(), Redirect(self.op.overload, self.op.reference):
            return self.call(*tensors)

    @cached_property
    def arguments(self) -> tuple[Any, ...]:
        """Arguments that the public function passes to the operator."""
        if not isinstance(self.op, Op):
            return self.op.arguments(self)
        with torch.no_grad(), Redirect(self.op.overload, self.op.overload) as redirect:
            self.call()
        assert redirect.calls, f"the public function never calls {self.op.qualified_name}"
        arguments: tuple[Any, ...] = redirect.calls[0]
        return arguments

    @cached_property
    def keywords(self) -> dict[str, Any]:
        """Keyword-only arguments that the public function passes to the operator; records have none."""
        return {} if isinstance(self.op, Op) else self.op.keywords(self)

    @cached_property
    def settings(self) -> tuple[Any, ...]:
        """Arguments that are not tensors, as `Op.warmup` and `Op.causal` of a record take them."""
        schema = self.op.overload._schema.arguments
        return tuple(x for x, a in zip(self.arguments, schema) if not private.is_tensor_like_type(a.type))

    @cached_property
    def warmup(self) -> int | tuple[int, ...]:
        return self.op.warmup(*self.settings) if isinstance(self.op, Op) else self.op.warmup_rows(self.sample)

    @cached_property
    def causal(self) -> bool:
        if not isinstance(self.op, Op):
            return self.op.is_causal(self.sample)
        return bool(self.op.causal(*self.settings) if callable(self.op.causal) else self.op.causal)

    @cached_property
    def time(self) -> tuple[int, int]:
        """Time axis of panels and of outputs; only for checks with `needs_time`."""
        assert self.op.time, "the record says time=None"
        input_axis, output_axis = self.op.time
        return input_axis, output_axis

    @cached_property
    def rows(self) -> int:
        """Length T of the time axis, or zero without one."""
        return int(self.tensors[0].shape[self.time[0]]) if self.op.time else 0

    @cached_property
    def num_batch_axes(self) -> int:
        """Number of batch axes of the first tensor: those before time; without a time axis, the first axis."""
        axes = self.tensors[0].dim()
        return int(axes + self.time[0] if self.op.time else min(axes, 1))

    @cached_property
    def panel_indices(self) -> tuple[int, ...]:
        """Indices of the tensors with a time axis as long as the first one's; the others are parameters."""
        if not self.op.time:
            return ()
        axis, inputs = self.time[0], enumerate(self.tensors[: self.num_inputs])
        return tuple(i for i, x in inputs if isinstance(x, Tensor) and x.dim() >= -axis and x.shape[axis] == self.rows)

    @cached_property
    def num_inputs(self) -> int:
        """Number of tensors that are arguments; the parameters of a module follow them."""
        return len(self.tensors) if isinstance(self.op, Op) else self.op.num_inputs(self.sample)

    @cached_property
    def float_indices(self) -> tuple[int, ...]:
        """Indices of the floating-point tensors, which can be differentiated."""
        return tuple(i for i, x in enumerate(self.tensors) if is_floating(x))

    def inputs(self) -> Tensors:
        """The floating-point tensors."""
        return tuple(self.tensors[i] for i in self.float_indices)

    def leaves(self) -> Tensors:
        """Copies of the floating-point tensors that require gradients."""
        return tuple(map(as_leaf, self.inputs()))

    def outputs(self, *inputs: Tensor) -> Tensors:
        """All outputs, as a function of the floating-point tensors."""
        tensors = list(self.tensors)
        for i, x in zip(self.float_indices, inputs):
            tensors[i] = x
        return self.call(*tensors)

    def finite_outputs(self, *inputs: Tensor) -> Tensors:
        """The floating-point outputs with NaN replaced by zero, as a function of the floating-point tensors."""
        return tuple(y.nan_to_num(0.0) for y in float_tensors(self.outputs(*inputs)))

    def loss(self, *inputs: Tensor) -> Tensor:
        """Scalar that depends on every row of every output, with a gradient that differs from row to row."""
        return torch.stack([(y.sin() + y.square() / 2).sum() for y in self.finite_outputs(*inputs)]).sum()

    def gradients(self, *inputs: Tensor) -> Tensors:
        """Gradient of `loss`, by eager autograd."""
        leaves = tuple(x.detach().requires_grad_() for x in inputs or self.inputs())
        return torch.autograd.grad(self.loss(*leaves), leaves, materialize_grads=True)


def as_tuple(result: Any) -> Tensors:
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def float_tensors(tensors: Sequence[Tensor]) -> Tensors:
    return tuple(y for y in tensors if y.is_floating_point())


def as_leaf(x: Any) -> Any:
    """A copy that requires gradients of a floating-point tensor, or of those in a list."""
    if isinstance(x, list):
        return [as_leaf(item) for item in x]
    return x.detach().clone().requires_grad_() if is_floating(x) else x
