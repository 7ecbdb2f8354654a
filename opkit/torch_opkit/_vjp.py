"""Gradients without a formula: of any function made of operators, and of an operator by its reference."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from torch_opkit import _torch_private as private
from torch_opkit._mutation import as_results, clone_arguments, mutated_indices


def vjp(
    function: Callable[..., Any], inputs: Iterable[Tensor], cotangent: Tensor | tuple[Tensor | None, ...]
) -> tuple[Tensor, ...]:
    """Vector-Jacobian product of a function made of operators, for operators without a hand-written `backward`.

    Args:
        function: takes `inputs` and returns one Tensor, or a tuple of them.
        inputs: the point at which to differentiate.
        cotangent: gradient of the function's result, of its shape; of several results a tuple, where None is zero.

    Returns:
        The gradient of each input. It can be differentiated again, and runs under `torch.func`; in a kernel it is a
        constant.

    Example:
        >>> import torch
        >>> import torch_opkit as opkit
        >>> opkit.vjp(torch.sin, [torch.zeros(2)], torch.tensor([1.0, 3.0]))
        (tensor([1., 3.]...),)
    """
    in_kernel = private.recording_is_off()
    with private.allow_recording(), torch.enable_grad():
        primals = list(inputs)
        offsets = [torch.zeros_like(x, requires_grad=True) for x in primals]  # torch.func forbids x.requires_grad_()
        results = as_results(function(*(x + offset for x, offset in zip(primals, offsets))))
        if any(map(private.is_batched, results)):  # vmap records nothing on leaves that it does not batch
            gradients = _batched_vjp(function, primals, as_results(cotangent))
        else:
            pairs = zip(results, as_results(cotangent), strict=True)
            dependent = [(y, c) for y, c in pairs if y.requires_grad and c is not None]
            if not dependent:  # a function with a derivative of zero, such as a comparison
                return tuple(torch.zeros_like(x) for x in primals)
            outputs, cotangents = zip(*dependent)
            gradients = torch.autograd.grad(outputs, offsets, cotangents, create_graph=True, materialize_grads=True)
    return tuple(gradient.detach() for gradient in gradients) if in_kernel else gradients


def _batched_vjp(
    function: Callable[..., Any], primals: list[Tensor], cotangents: tuple[Tensor | None, ...]
) -> tuple[Tensor, ...]:
    def results(*inputs: Tensor) -> tuple[Tensor, ...]:
        pairs = zip(as_results(function(*inputs)), cotangents, strict=True)
        return tuple(y for y, c in pairs if c is not None)

    gradients: tuple[Tensor, ...] = torch.func.vjp(results, *primals)[1](tuple(c for c in cotangents if c is not None))
    return gradients


def differentiate_reference(reference: Callable[..., Any], overload: torch._ops.OpOverload) -> Callable[..., Any]:
    """The formula for `Op.backward` that differentiates the reference; it names all arguments."""
    names = [argument.name for argument in overload._schema.arguments]
    tensors = [i for i, a in enumerate(overload._schema.arguments) if private.is_tensor_like_type(a.type)]
    mutated = mutated_indices(overload)

    @functools.wraps(reference)
    def backward(*grads: Tensor | None, needs_input_grad: tuple[bool, ...], **arguments: Any) -> tuple[Any, ...]:
        needed = [names[i] for i, need in zip(tensors, needs_input_grad) if need]

        def function(*inputs: Tensor) -> tuple[Any, ...]:
            args = clone_arguments(mutated, [*(arguments | dict(zip(needed, inputs))).values()])
            outputs = as_results(reference(*args))
            return (*(args[i] for i in mutated), *outputs)

        gradients = dict(zip(needed, vjp(function, [arguments[name] for name in needed], grads)))
        return tuple(gradients.get(names[i]) for i in tensors)

    parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in (*names, "needs_input_grad")]
    backward.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return backward
