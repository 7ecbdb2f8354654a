"""What a row judges: one operator on one sample, with the ways to call it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from torchcommodity.opkit import _torch_private as private
from torchcommodity.opkit._cases import Cases, Sample
from torchcommodity.opkit._op import Op

Outputs = tuple[Tensor, ...]


class Skip(Exception):  # noqa: N818  # it is no error
    """A promise that cannot be judged here; the message says why."""


class Instead(TorchDispatchMode):
    """While it is open, `function` answers for an operator; `calls` keeps the arguments that reached it."""

    def __init__(self, overload: Any, function: Callable[..., Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.overload, self.function, self.calls = overload, function, list[tuple[Any, ...]]()

    def __torch_dispatch__(self, called: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if called is not self.overload:
            return called(*args, **(kwargs or {}))
        self.calls.append(private.fill_defaults(self.overload._schema, args, kwargs or {})[0])
        return self.function(*self.calls[-1])


@dataclass(frozen=True, eq=False)
class Subject:
    """One operator on one sample. Its door is called with tensors; the settings are those of the sample."""

    op: Any  # an Op, or a Foreign
    cases: Cases
    sample: Sample

    @property
    def tensors(self) -> tuple[Any, ...]:
        """The tensors of the sample; an optional one may be None."""
        return self.sample.tensors

    def given(self, tensors: Sequence[Any]) -> "Subject":
        return replace(self, sample=Sample(*tensors, **self.sample.settings))

    def mapped(self, change: Callable[[Tensor], Tensor]) -> "Subject":
        return self.given([change(x) if isinstance(x, Tensor) else x for x in self.tensors])

    def call(self, *tensors: Any) -> Outputs:
        """Through the public function; always a tuple."""
        return as_tuple(self.cases.function(*(tensors or self.tensors), **self.sample.settings))

    def defined(self, *tensors: Any) -> Outputs:
        """The same, but the reference answers in place of the kernel; the oracle, for an operator of another make."""
        if not isinstance(self.op, Op):
            if not self.cases.oracle:
                raise Skip("no oracle was given: there is nothing to compare its values with")
            return as_tuple(self.cases.oracle(*(tensors or self.tensors), **self.sample.settings))
        with torch.no_grad(), Instead(self.op.overload, self.op.reference):
            return self.call(*tensors)

    @cached_property
    def arguments(self) -> tuple[Any, ...]:
        """What the public function hands to the operator."""
        if getattr(self.op, "plain", False):
            return self.tensors
        with torch.no_grad(), Instead(self.op.overload, self.op.overload) as spy:
            self.call()
        assert spy.calls, f"the public function never calls {self.op.qualified_name}"
        arguments: tuple[Any, ...] = spy.calls[0]
        return arguments

    @cached_property
    def settings(self) -> tuple[Any, ...]:
        """The arguments that are no tensors, as `warmup` and `causal` take them."""
        schema = self.op.overload._schema.arguments
        return tuple(x for x, a in zip(self.arguments, schema) if not private.is_tensor_like_type(a.type))

    @cached_property
    def warmup(self) -> int | tuple[int, ...]:
        rows: int | tuple[int, ...] = self.op.warmup(*self.settings)
        return rows

    @cached_property
    def causal(self) -> bool:
        return bool(self.op.causal(*self.settings) if callable(self.op.causal) else self.op.causal)

    @cached_property
    def time(self) -> tuple[int, int]:
        """The time axis of panels and of outputs; rows that say `timed` may ask for it."""
        assert self.op.time, "the record says time=None"
        into, out = self.op.time
        return into, out

    @cached_property
    def rows(self) -> int:
        """The length T of time, or zero without it."""
        return int(self.tensors[0].shape[self.time[0]]) if self.op.time else 0

    @cached_property
    def batch_axes(self) -> int:
        """How many axes of the first tensor are batches: those before time; without time, the first."""
        axes = self.tensors[0].dim()
        return int(axes + self.time[0] if self.op.time else min(axes, 1))

    @cached_property
    def panels(self) -> tuple[int, ...]:
        """Which tensors have a time axis as long as the first one's; the others are parameters."""
        return tuple(i for i, x in enumerate(self.tensors) if self._has_time(x))

    def _has_time(self, x: Any) -> bool:
        if not self.op.time or not isinstance(x, Tensor):
            return False
        axis = self.time[0]
        return x.dim() >= -axis and x.shape[axis] == self.rows

    def with_panels(self, change: Callable[[Tensor], Tensor]) -> "Subject":
        return self.given([change(x) if i in self.panels else x for i, x in enumerate(self.tensors)])

    @cached_property
    def floating(self) -> tuple[int, ...]:
        """Which tensors can be differentiated."""
        return tuple(i for i, x in enumerate(self.tensors) if isinstance(x, Tensor) and x.is_floating_point())

    def inputs(self) -> Outputs:
        return tuple(self.tensors[i] for i in self.floating)

    def leaves(self) -> Outputs:
        return tuple(x.detach().clone().requires_grad_() for x in self.inputs())

    def value(self, *inputs: Tensor) -> Outputs:
        """The floating-point outputs, NaN as zero, as a function of the floating-point tensors."""
        return tuple(y.nan_to_num(0.0) for y in floats(self.raw_value(*inputs)))

    def raw_value(self, *inputs: Tensor) -> Outputs:
        tensors = list(self.tensors)
        for i, x in zip(self.floating, inputs):
            tensors[i] = x
        return self.call(*tensors)

    def loss(self, *inputs: Tensor) -> Tensor:
        """A scalar that no output and no row leaves out, and whose gradient differs from row to row."""
        return torch.stack([(y.sin() + y.square() / 2).sum() for y in self.value(*inputs)]).sum()

    def gradients(self, *inputs: Tensor) -> Outputs:
        """The gradient of `loss`, by eager autograd."""
        leaves = tuple(x.detach().requires_grad_() for x in inputs or self.inputs())
        return torch.autograd.grad(self.loss(*leaves), leaves, materialize_grads=True)


def as_tuple(result: Any) -> Outputs:
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def floats(outputs: Sequence[Tensor]) -> Outputs:
    return tuple(y for y in outputs if y.is_floating_point())
