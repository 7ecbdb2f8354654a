"""The autograd kernel of an operator: one node, for eager mode, `torch.func`, `torch.compile` and combinations of them.

It is registered on the `Autograd` key and runs a single-level autograd node, as PyTorch's own operators do. An
`autograd.Function` would not work: `torch.func` cannot enter one from inside an operator. Each level of `torch.func`
calls this kernel for itself, and the kernel redispatches below autograd.
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any, NoReturn

import torch
from torch import Tensor

from torch_opkit import _torch_private as private
from torch_opkit._mutation import (
    as_results,
    clone_arguments,
    from_results,
    mutated_indices,
    require_constant,
    write_back,
)

Formula = Callable[..., Any]
Masks = list[Tensor | None]


@dataclass(frozen=True)
class Gradients:
    """The derivative formulas of an operator, and what its forward pass saves for them.

    A formula names the values that it needs by keyword-only parameters: an argument of the operator, "output" for all
    outputs, "output1" for one of several, or, in `backward`, "needs_input_grad", which says for each Tensor argument
    whether its gradient is needed.
    """

    overload: torch._ops.OpOverload
    backward: Formula
    jvp: Formula | None
    mask_nan_grad: bool = True  # mask NaN outputs here, so all outputs are saved; else those that `backward` names
    materialize_grads: bool = True  # replace an undefined gradient by zeros; else pass None
    once_differentiable: bool = False  # the formula of the gradient is not differentiable itself

    def __post_init__(self) -> None:
        values = [*self.argument_names, "output", *(f"output{i}" for i in range(self.num_outputs))]
        for formula, names in self.required.items():
            is_backward = formula is self.backward
            known = [*values, "needs_input_grad"] if is_backward else values
            if unknown := [name for name in names if name not in known]:
                label = f"Op {self.overload._opname}: {'backward' if is_backward else 'jvp'}"
                expected = f"values by keyword of {', '.join(known)}"
                raise TypeError(f"{label} must take {expected}; got {', '.join(unknown)}")
        parameters = inspect.signature(self.backward).parameters.values()
        positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty]
        if extra := positional[self.num_outputs :]:
            expected = f"a gradient for each output ({self.num_outputs}), then values by keyword, after *"
            raise TypeError(
                f"Op {self.overload._opname}: backward must take {expected}; got {', '.join(extra)} before *"
            )

    @cached_property
    def argument_names(self) -> list[str]:
        return [argument.name for argument in self.overload._schema.arguments]

    @cached_property
    def is_tensor(self) -> list[bool]:
        """For each argument, whether it is a Tensor or an optional Tensor."""
        return [private.is_tensor_like_type(argument.type) for argument in self.overload._schema.arguments]

    @cached_property
    def tensor_indices(self) -> list[int]:
        return [i for i, is_tensor in enumerate(self.is_tensor) if is_tensor]

    @cached_property
    def mutated(self) -> tuple[int, ...]:
        """Indices of the arguments that are written to; for the formulas their new values are the first outputs."""
        return mutated_indices(self.overload)

    @cached_property
    def required(self) -> dict[Formula, list[str]]:
        """Names of the values that each formula needs."""
        formulas = [formula for formula in (self.backward, self.jvp) if formula]
        return {
            formula: [p.name for p in inspect.signature(formula).parameters.values() if p.kind is p.KEYWORD_ONLY]
            for formula in formulas
        }

    @cached_property
    def num_outputs(self) -> int:
        """Number of outputs that formulas see: new values of arguments that are written to, then the results."""
        return len(self.mutated) + len(self.overload._schema.returns)

    @cached_property
    def saved_tensors(self) -> dict[str, int]:
        """Indices of the Tensor arguments that a formula needs, by name."""
        return {name: i for name, i in self._saved.items() if self.is_tensor[i]}

    @cached_property
    def saved_settings(self) -> dict[str, int]:
        """Indices of the other arguments that a formula needs, by name."""
        return {name: i for name, i in self._saved.items() if not self.is_tensor[i]}

    @cached_property
    def _saved(self) -> dict[str, int]:
        required = {name for names in self.required.values() for name in names}
        return {name: i for i, name in enumerate(self.argument_names) if name in required}

    @cached_property
    def saved_outputs(self) -> list[int]:
        """Indices of the outputs saved for `backward`: all if they are masked here, else those that it names."""
        names = self.required[self.backward]
        indices = range(self.num_outputs)
        return [i for i in indices if self.mask_nan_grad or "output" in names or f"output{i}" in names]

    @cached_property
    def names_outputs(self) -> bool:
        """Whether a formula needs the values of an output, not only where it is NaN."""
        outputs = {"output", *(f"output{i}" for i in range(self.num_outputs))}
        return any(not outputs.isdisjoint(names) for names in self.required.values())

    @cached_property
    def asks_for_needs(self) -> bool:
        """Whether `backward` asks which gradients are needed."""
        return "needs_input_grad" in self.required[self.backward]

    def call(self, formula: Formula, values: Iterable[Any], saved: dict[str, Any]) -> tuple[Any, ...]:
        return as_tuple(formula(*values, **{name: saved[name] for name in self.required[formula]}))

    def by_argument(self, values: Sequence[Any]) -> list[Any]:
        """The gradients that `backward` returned, one for each Tensor argument, and None for each setting."""
        if len(values) != len(self.tensor_indices):
            names = [self.argument_names[i] for i in self.tensor_indices]
            expected = f"backward must return one gradient for each Tensor argument, {', '.join(names)}"
            raise TypeError(f"{self.overload._opname}: {expected}; got {len(values)}")
        results: list[Any] = [None] * len(self.is_tensor)
        for i, value in zip(self.tensor_indices, values):
            results[i] = value
        return results

    def transpose(self, tangents: list[Any], saved: dict[str, Any], masks: Masks) -> list[Tensor | None]:
        """Derive the jvp from `backward`, which is linear in the gradient: differentiating it transposes it."""
        saved = saved | {"needs_input_grad": tuple(t is not None for t in tangents)}
        with torch.enable_grad():
            outputs = zip(as_tuple(saved["output"]), masks)
            cotangents = [None if mask is None else torch.zeros_like(y, requires_grad=True) for y, mask in outputs]
            gradients = self.call(self.backward, cotangents, saved)
            pairs = [(g, t) for g, t in zip(gradients, tangents) if g is not None and t is not None]
            differentiable = [cotangent for cotangent in cotangents if cotangent is not None]
            output_tangents = torch.autograd.grad(
                [g for g, _ in pairs], differentiable, [t for _, t in pairs], create_graph=True, materialize_grads=True
            )
        remaining = iter(output_tangents)
        return [None if mask is None else next(remaining) for mask in masks]


def autograd_kernel(gradients: Gradients) -> Callable[..., Any]:
    """The kernel for the `Autograd` key, `kernel(keyset, *args)`; the keyset is None in a call from Python."""
    overload, apply = gradients.overload, _make_node(gradients).apply
    count, mutated = len(gradients.argument_names), gradients.mutated
    old_values = [i for i in mutated if i in gradients.saved_tensors.values()]  # a formula needs them

    def record(keyset: object, args: Sequence[Any]) -> Any:
        if len(args) < count:
            args = private.fill_defaults(overload._schema, args, {})[0]
        if not mutated:
            return apply(keyset, *args)
        return write_back(mutated, args, apply(keyset, *clone_arguments(old_values, args)))

    def kernel(keyset: object, *args: object) -> Any:
        if private.transforms_active():
            with private.single_level():
                return record(keyset, args)
        if (torch.is_grad_enabled() and private.any_requires_grad(*args)) or private.forward_mode_active():
            return record(keyset, args)
        return _call_below(overload, keyset, args)

    return kernel


def constant_kernel(overload: torch._ops.OpOverload) -> Callable[..., Any]:
    """The kernel of an operator without formulas: its outputs are constants, even if its reference runs."""

    def kernel(keyset: object, *args: object) -> Any:
        require_constant(overload, args)
        return _call_below(overload, keyset, args)

    return kernel


def as_tuple(result: object) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def _is_differentiable(y: Tensor) -> bool:
    return y.is_floating_point() or y.is_complex()


def _call_below(overload: torch._ops.OpOverload, keyset: Any, args: tuple[Any, ...]) -> Any:
    with private.below_autograd():
        if keyset is None:
            return overload._op(*args)  # without the microsecond that calls of `overload` add
        return overload.redispatch(keyset & private.after_autograd, *args)


def _call_functional(overload: torch._ops.OpOverload, keyset: object, args: tuple[Any, ...]) -> Any:
    """The call as a function: it writes to copies of the arguments, and returns these before its outputs."""
    mutated = mutated_indices(overload)
    with private.below_autograd():
        copies = clone_arguments(mutated, args)
    outputs = as_results(_call_below(overload, keyset, tuple(copies)))
    return (*(copies[i] for i in mutated), *outputs)


def _unpack(
    gradients: Gradients, ctx: Any, saved: Sequence[Any], output_indices: Sequence[int], mask_tangents: bool = False
) -> tuple[dict[str, Any], Masks]:
    """Saved values by name, and the NaN mask of each saved output, None if it is an integer or no mask is needed.

    With `mask_nan_grad`, NaN in outputs becomes zero: 0 * NaN would bring a warm-up row back into the gradient.
    """
    values = dict(zip(gradients.saved_tensors, saved))
    values.update(ctx.settings)
    outputs = saved[len(gradients.saved_tensors) :]
    masks: Masks = [None] * len(outputs)
    if gradients.mask_nan_grad or mask_tangents:
        masks = [y.isnan() if _is_differentiable(y) else None for y in outputs]
    if gradients.mask_nan_grad and gradients.names_outputs:
        outputs = [y if mask is None else y.masked_fill(mask, 0) for y, mask in zip(outputs, masks)]
    for i, y in zip(output_indices, outputs):
        values[f"output{i}"] = y
    if len(outputs) == gradients.num_outputs:
        values["output"] = from_results(outputs)
    return values, masks


def _mask(values: Iterable[Any], masks: Masks) -> list[Any]:
    """Set the gradient or tangent of NaN outputs to zero, even if it is NaN."""
    pairs = zip(values, masks)
    return [value if mask is None or value is None else value.masked_fill(mask, 0) for value, mask in pairs]


def _make_node(gradients: Gradients) -> Any:
    # bound once: a call of a small operator takes ten microseconds, and each look-up a tenth of one
    overload, mutated, is_tensor = gradients.overload, gradients.mutated, gradients.is_tensor
    saved_tensors, saved_outputs = [*gradients.saved_tensors.values()], gradients.saved_outputs
    saved_settings, asks_for_needs = [*gradients.saved_settings.items()], gradients.asks_for_needs

    class Node(private.SingleLevelFunction):
        _compiled_autograd_key = staticmethod(torch.autograd.Function._compiled_autograd_key)

        @staticmethod
        def forward(ctx: Any, keyset: object, *args: object) -> Any:
            call = _call_functional if mutated else _call_below
            if nested := private.transforms_active():  # outer levels of torch.func differentiate the call below
                with torch.enable_grad(), private.tangents_enabled(True):
                    result = call(overload, keyset, args)
            else:  # PyTorch has disabled both
                result = call(overload, keyset, args)
            outputs = result if isinstance(result, tuple) else (result,)
            if constants := [y for y in outputs if not (y.is_floating_point() or y.is_complex())]:
                ctx.mark_non_differentiable(*constants)
            if not gradients.materialize_grads:
                ctx.set_materialize_grads(False)
            ctx.settings = {name: args[i] for name, i in saved_settings}
            tensors: list[Any] = [args[i] for i in saved_tensors]
            ctx.save_for_backward(*tensors, *[outputs[i] for i in saved_outputs])
            if nested or private.forward_mode_active():
                ctx.save_for_forward(*tensors, *outputs)  # freed at the end of this call
            return result

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            saved, masks = _unpack(gradients, ctx, ctx.saved_tensors, saved_outputs)
            if gradients.mask_nan_grad:
                grads = tuple(_mask(grads, masks))
            if asks_for_needs:
                saved["needs_input_grad"] = tuple(compress(ctx.needs_input_grad[1:], is_tensor))
            values: Sequence[Any] = gradients.call(gradients.backward, grads, saved)
            if gradients.once_differentiable and torch.is_grad_enabled():
                values = _refuse_derivative(overload._opname, values, (*grads, *ctx.saved_tensors))
            return None, *gradients.by_argument(values)

        @staticmethod
        def jvp(ctx: Any, _: object, *tangents: object) -> Any:
            if gradients.once_differentiable and not gradients.jvp:
                raise _once_error(gradients.overload._opname, "a derivative in forward mode")
            tensor_tangents = [t for t, is_tensor in zip(tangents, gradients.is_tensor) if is_tensor]
            with private.tangents_enabled(True):  # PyTorch disables them here; outer levels need them
                # Unpacking one level keeps jacfwd(jacfwd) right: saved tensors are dual in this level too.
                primals = [
                    None if x is None else private.forward_ad.unpack_dual(x, level=0).primal for x in ctx.saved_tensors
                ]
                indices = range(gradients.num_outputs)
                saved, masks = _unpack(gradients, ctx, primals, indices, mask_tangents=True)
                if gradients.jvp:
                    output_tangents: Iterable[Any] = gradients.call(gradients.jvp, tensor_tangents, saved)
                else:
                    output_tangents = gradients.transpose(tensor_tangents, saved, masks)
                pairs = zip(_mask(output_tangents, masks), masks)
                results = [None if mask is None else tangent for tangent, mask in pairs]
            return from_results(results)

    Node._backward_cls.__name__ = f"{gradients.overload._opname}Backward"  # what `grad_fn` prints
    return Node


class _Once(torch.autograd.Function):
    """The identity on the first `count` tensors; its output depends on all tensors, but has no derivative."""

    generate_vmap_rule = True

    @staticmethod
    def forward(name: str, count: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(x.view_as(x) for x in tensors[:count])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: object) -> None:
        ctx.name = inputs[0]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> NoReturn:
        raise _once_error(ctx.name, "a second derivative")

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor) -> NoReturn:
        raise _once_error(ctx.name, "a derivative of its gradient")


def _once_error(name: str, request: str) -> RuntimeError:
    return RuntimeError(
        f"{name}: the Op declares once_differentiable=True, which allows first derivatives in backward mode; got a "
        f"request for {request}. Write backward (and jvp) with differentiable operators, or omit create_graph"
    )


def _refuse_derivative(name: str, gradients: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    """The same gradients, which raise an error if they are differentiated; `inputs` is what they depend on."""
    present = [g.detach() for g in gradients if g is not None]
    dependencies = [x for x in inputs if isinstance(x, Tensor) and x.is_floating_point()]
    results = iter(_Once.apply(name, len(present), *present, *dependencies))  # type: ignore[no-untyped-call]
    return [None if g is None else next(results) for g in gradients]
