"""The autograd kernel of an operator: one node, for eager mode, `torch.func`, `torch.compile` and any mixture of them.

It is registered on the `Autograd` key and runs a single-level autograd node, as PyTorch's own operators do. An
`autograd.Function` would not do: `torch.func` cannot enter one from inside an operator. Each level of `torch.func`
calls this kernel for itself, and the kernel redispatches below autograd.
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from torchcommodity.opkit import _torch_private as private

Formula = Callable[..., Any]
Masks = list[Tensor | None]


@dataclass(frozen=True)
class Gradients:
    """The formulas of an operator, and what its forward pass keeps for them.

    A formula names what it needs by keyword-only parameters: an argument of the operator, "output" for all outputs,
    "output1" for one of several, or "needs_input_grad", which says for each Tensor argument whether it is asked for.
    """

    overload: torch._ops.OpOverload
    backward: Formula
    jvp: Formula | None
    mask_nan_grad: bool = (
        True  # NaN outputs are masked here, so they are kept; else `backward` does it, from what it names
    )
    materialize_grads: bool = True  # a gradient or tangent that nobody gave is zeros; False: None

    @cached_property
    def arguments(self) -> list[str]:
        return [argument.name for argument in self.overload._schema.arguments]

    @cached_property
    def is_tensor(self) -> list[bool]:  # an absent optional Tensor has a slot too
        return [private.is_tensor_like_type(argument.type) for argument in self.overload._schema.arguments]

    @cached_property
    def needs(self) -> dict[Formula, list[str]]:
        formulas = [formula for formula in (self.backward, self.jvp) if formula]
        return {
            formula: [p.name for p in inspect.signature(formula).parameters.values() if p.kind is p.KEYWORD_ONLY]
            for formula in formulas
        }

    @cached_property
    def kept(self) -> list[int]:
        return [i for i, name in enumerate(self.arguments) if any(name in names for names in self.needs.values())]

    @cached_property
    def kept_outputs(self) -> list[int]:
        """Those that are kept for `backward`: all, where they are masked here; else those that it names."""
        every = range(len(self.overload._schema.returns))
        named = self.needs[self.backward]
        return [i for i in every if self.mask_nan_grad or "output" in named or f"output{i}" in named]

    def asked(self, ctx: Any) -> dict[str, Any]:
        if "needs_input_grad" not in self.needs[self.backward]:
            return {}
        needs = zip(ctx.needs_input_grad[1:], self.is_tensor)
        return {"needs_input_grad": tuple(need for need, tensor in needs if tensor)}

    def call(self, formula: Formula, values: Iterable[Any], kept: dict[str, Any]) -> tuple[Any, ...]:
        return as_tuple(formula(*values, **{name: kept[name] for name in self.needs[formula]}))

    def transpose(self, tangents: list[Any], kept: dict[str, Any], masks: Masks) -> list[Tensor | None]:
        """Forward mode from `backward`: it is linear in the gradient, so differentiating it transposes it."""
        kept = kept | {"needs_input_grad": tuple(t is not None for t in tangents)}
        with torch.enable_grad():
            outputs = zip(as_tuple(kept["output"]), masks)
            probes = [None if mask is None else torch.zeros_like(y, requires_grad=True) for y, mask in outputs]
            pulled = self.call(self.backward, probes, kept)
            pairs = [(g, t) for g, t in zip(pulled, tangents) if g is not None and t is not None]
            floating = [probe for probe in probes if probe is not None]
            pushed = torch.autograd.grad(
                [g for g, _ in pairs], floating, [t for _, t in pairs], create_graph=True, materialize_grads=True
            )
        result = iter(pushed)
        return [None if mask is None else next(result) for mask in masks]


def autograd_kernel(gradients: Gradients) -> Callable[..., Any]:
    """The kernel for the `Autograd` key: `kernel(keyset, *args)`; a keyset of None means a call from Python."""
    overload, node = gradients.overload, _node(gradients)

    def kernel(keyset: Any, *args: Any) -> Any:
        needed = torch.is_grad_enabled() and private.any_requires_grad(*args)
        if needed or private.forward_mode_active() or private.transforms_active():
            with private.single_level():
                return node.apply(keyset, *private.fill_defaults(overload._schema, args, {})[0])
        return _below(overload, keyset, args)

    return kernel


def constant_kernel(overload: torch._ops.OpOverload) -> Callable[..., Any]:
    """The same for an operator without formulas: its outputs are constants, also where its reference answers."""

    def kernel(keyset: Any, *args: Any) -> Any:
        return _below(overload, keyset, args)

    return kernel


def as_tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def vjp(function: Callable[..., Tensor], tensors: Iterable[Tensor], grad: Tensor) -> tuple[Tensor, ...]:
    """Backward formula of a function that is made of operators: its gradients in `tensors`, differentiable again."""
    with torch.enable_grad():
        at = list(tensors)
        probes = [torch.zeros_like(x, requires_grad=True) for x in at]  # torch.func lets no tensor require a gradient
        result = function(*(x + probe for x, probe in zip(at, probes)))
        return torch.autograd.grad(result, probes, grad, create_graph=True, materialize_grads=True)


def _continuous(y: Tensor) -> bool:
    return y.is_floating_point() or y.is_complex()


def _below(overload: torch._ops.OpOverload, keyset: Any, args: tuple[Any, ...]) -> Any:
    with private.below_autograd():
        if keyset is None:
            return overload(*args)
        return overload.redispatch(keyset & private.after_autograd, *args)


def _recall(
    ctx: Any, saved: Iterable[Tensor], which: list[int], masked: bool, pushed: bool = False
) -> tuple[dict[str, Any], Masks]:
    """What the formulas asked for, and where each of those outputs was NaN (None if it is an integer,
    or nobody asks: `pushed` tangents are always masked).

    Masked outputs come with zeros for NaN: 0 * NaN would bring a warm-up back into the gradient.
    """
    arguments = list(saved)
    outputs = [arguments.pop() for _ in which][::-1]
    masks = [y.isnan() if _continuous(y) and (masked or pushed) else None for y in outputs]
    clean = [y if mask is None or not masked else y.masked_fill(mask, 0) for y, mask in zip(outputs, masks)]
    tensors = iter(arguments)
    kept = {name: next(tensors) if value is Tensor else value for name, value in ctx.kept.items()}
    whole = {"output": tuple(clean) if len(clean) > 1 else clean[0]} if len(which) == ctx.outputs else {}
    return kept | {f"output{i}": y for i, y in zip(which, clean)} | whole, masks


def _masked(values: Iterable[Any], masks: Masks) -> list[Any]:
    """A NaN output takes no part: its gradient and its tangent are zero, whatever came in."""
    pairs = zip(values, masks)
    return [value if mask is None or value is None else value.masked_fill(mask, 0) for value, mask in pairs]


def _node(gradients: Gradients) -> Any:
    class Node(private.SingleLevelFunction):
        _compiled_autograd_key = staticmethod(torch.autograd.Function._compiled_autograd_key)

        @staticmethod
        def forward(ctx: Any, keyset: Any, *args: Any) -> Any:
            outer = private.transforms_active()  # the outer levels of torch.func differentiate what is below
            with torch.set_grad_enabled(outer), private.tangents_enabled(outer):
                result = _below(gradients.overload, keyset, args)
            outputs = as_tuple(result)
            ctx.mark_non_differentiable(*[y for y in outputs if not _continuous(y)])
            ctx.set_materialize_grads(gradients.materialize_grads)
            ctx.outputs = len(outputs)
            kept = {gradients.arguments[i]: args[i] for i in gradients.kept}
            ctx.kept = {name: Tensor if isinstance(value, Tensor) else value for name, value in kept.items()}
            saved = [value for value in kept.values() if isinstance(value, Tensor)]
            ctx.save_for_backward(*saved, *[outputs[i] for i in gradients.kept_outputs])
            ctx.save_for_forward(*saved, *outputs)  # not beyond this call
            return result

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            kept, masks = _recall(ctx, ctx.saved_tensors, gradients.kept_outputs, gradients.mask_nan_grad)
            masks = masks if gradients.mask_nan_grad else [None] * ctx.outputs
            results = iter(gradients.call(gradients.backward, _masked(grads, masks), kept | gradients.asked(ctx)))
            return None, *[next(results) if tensor else None for tensor in gradients.is_tensor]

        @staticmethod
        def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
            given = [tangent for tangent, tensor in zip(tangents, gradients.is_tensor) if tensor]
            with private.tangents_enabled(True):  # PyTorch calls us with it off; outer levels need it
                # Unpacking one level keeps jacfwd(jacfwd) right: what was saved is dual in this level too.
                primals = [private.forward_ad.unpack_dual(x, level=0).primal for x in ctx.saved_tensors]
                kept, masks = _recall(ctx, primals, [*range(ctx.outputs)], gradients.mask_nan_grad, pushed=True)
                pushed = (
                    gradients.call(gradients.jvp, given, kept)
                    if gradients.jvp
                    else gradients.transpose(given, kept, masks)
                )
                results = [None if mask is None else tangent for tangent, mask in zip(_masked(pushed, masks), masks)]
            return tuple(results) if len(results) > 1 else results[0]

    Node._backward_cls.__name__ = f"{gradients.overload._opname}Backward"  # what `grad_fn` prints
    return Node
