"""Models outside PyTorch as operators: a NumPy function, an ONNX Runtime session, a fitted regressor."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from torch_opkit._op import Op

Gradient = Literal["none", "custom", "finite-difference", "straight-through"]
Array = np.ndarray[Any, Any]
DTYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64}  # of ONNX inputs


def external(
    model: object,
    *,
    name: str,
    inputs: int = 1,
    fake: Callable[..., Tensor] | None = None,
    gradient: Gradient = "none",
    backward: Callable[..., Any] | None = None,
    batched: bool = False,
) -> Callable[..., Tensor]:
    """Wrap a model outside PyTorch as an operator. `torch.compile` and `torch.export` treat it as opaque.

    Args:
        model: a function of NumPy arrays, in the dtype of the Tensors, that returns one array; or an object with
            `.predict`, as in scikit-learn, from (..., F) to (...); or an ONNX Runtime session, of which the first
            output is used.
        name: the operator's name, such as "mine::ridge".
        inputs: number of input Tensors.
        fake: the result without values, as in `Op`; default: like the first input, without its last axis if the model
            has `.predict`.
        gradient: "custom": computed by `backward`; "finite-difference": central differences, with two calls for each
            input element, or for each element of the last axis if `batched`; "straight-through": the gradient of the
            identity, which `opkit.check` reports as wrong; "none": a backward pass raises an error.
        backward: (gradient of the result, *inputs) -> gradient of each input, all NumPy arrays.
        batched: rows along the leading axes are independent, so `vmap` is one call.

    Returns:
        The operator, a function of `inputs` Tensors.

    Raises:
        TypeError: `model` is not callable and has no `.predict` or `.run`.
        ValueError: `backward` and `gradient` contradict each other, or `gradient` is unknown.
        RuntimeError: in a call, if the result does not have the shape of `fake`; in a backward pass, if there is no
            gradient, or a second derivative is asked for.

    Example:
        >>> import numpy as np, torch
        >>> import torch_opkit as opkit
        >>> sine = opkit.external(np.sin, name="doctest::sine", gradient="custom", backward=lambda g, x: g * np.cos(x))
        >>> x = torch.zeros(2, requires_grad=True)
        >>> sine(x).sum().backward(); x.grad
        tensor([1., 1.])
    """
    if gradient not in get_args(Gradient):
        choices = ", ".join(get_args(Gradient))
        raise ValueError(f"external: gradient must be one of {choices}; got {gradient!r}")
    if (backward is not None) != (gradient == "custom"):
        presence = "no backward" if backward is None else "backward"
        raise ValueError(f'external: gradient="custom" and backward must go together; got {gradient!r}, {presence}')
    predicts = hasattr(model, "predict")
    function, batched = _as_function(model), batched or predicts
    fake = fake or (lambda x, *_: x.new_empty(x.shape[:-1] if predicts else x.shape))
    make = partial(_make_operator, name, function, fake, inputs=inputs, batched=batched)
    if gradient == "straight-through":
        return make(lambda grad, **_: (grad,) + (None,) * (inputs - 1))
    if gradient == "none":
        return make(_raise_no_gradient(name))
    numpy_backward = backward or _finite_differences(function, batched)
    backward_operator = _make_backward(f"{name}_backward", numpy_backward, inputs, batched)
    return make(lambda grad, **saved: backward_operator(grad, *saved.values()), saves_inputs=True)


def _as_function(model: Any) -> Callable[..., Any]:
    if hasattr(model, "get_inputs") and hasattr(model, "run"):
        inputs = [(value.name, DTYPES[value.type]) for value in model.get_inputs()]
        return lambda *x: model.run(None, {name: a.astype(dtype) for (name, dtype), a in zip(inputs, x)})[0]
    if hasattr(model, "predict"):
        return lambda x: model.predict(x.reshape(-1, x.shape[-1])).reshape(x.shape[:-1])
    if not callable(model):
        raise TypeError(f"external: model must be callable, or have .predict or .run; got {type(model).__name__}")
    return model  # type: ignore[no-any-return]


def _make_operator(
    name: str,
    function: Callable[..., Any],
    fake: Callable[..., Tensor],
    backward: Any,
    *,
    inputs: int,
    batched: bool,
    saves_inputs: bool = False,
) -> Callable[..., Tensor]:
    names = [f"x{i}" for i in range(inputs)]

    def reference(*tensors: Tensor) -> Tensor:
        expected = fake(*tensors)
        result = np.asarray(function(*[x.detach().cpu().numpy() for x in tensors]))
        if result.shape != tuple(expected.shape):
            raise RuntimeError(f"{name}: the model must return shape {tuple(expected.shape)}; got {result.shape}")
        return torch.as_tensor(result.copy()).to(tensors[0].device, expected.dtype)

    def formula(grad: Tensor, **saved: Tensor) -> Any:
        return backward(grad, **saved)

    # `Op` reads the schema, and the saved inputs, off these signatures.
    reference.__signature__ = _signature(names, inspect.Parameter.POSITIONAL_OR_KEYWORD)  # type: ignore[attr-defined]
    saved = names if saves_inputs else []
    formula.__signature__ = _signature(saved, inspect.Parameter.KEYWORD_ONLY, "grad")  # type: ignore[attr-defined]
    return Op(
        name,
        reference=reference,
        fake=lambda *tensors: fake(*tensors),
        backward=formula,
        once_differentiable=saves_inputs,  # the gradient is NumPy's too
        vmap="batch" if batched else "loop",
        time=None,
        causal=False,
    )


def _signature(names: list[str], kind: Any, *first: str) -> inspect.Signature:
    positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, positional, annotation=Tensor) for name in first]
    parameters += [inspect.Parameter(name, kind, annotation=Tensor) for name in names]
    return inspect.Signature(parameters, return_annotation=Tensor)


def _raise_no_gradient(name: str) -> Callable[..., Any]:
    def backward(*_: object, **__: object) -> Any:
        raise RuntimeError(
            f'{name}: the model has no gradient; pass external(..., gradient="custom") or another method'
        )

    return backward


def _make_backward(name: str, backward: Callable[..., Any], inputs: int, batched: bool) -> Callable[..., Any]:
    """The gradient of each input as a separate, opaque operator."""

    def make(i: int) -> Callable[..., Tensor]:
        def gradient(grad: Array, *x: Array) -> Any:
            gradients = backward(grad, *x)
            return gradients[i] if isinstance(gradients, tuple) else gradients

        def fake(grad: Tensor, *x: Tensor) -> Tensor:
            return x[i].new_empty(x[i].shape)

        label = f"{name}_{i}" if inputs > 1 else name
        return _make_operator(label, gradient, fake, _raise_no_gradient(label), inputs=inputs + 1, batched=batched)

    operators = [make(i) for i in range(inputs)]
    return lambda grad, *x: tuple(operator(grad, *x) for operator in operators)


def _finite_differences(function: Callable[..., Any], batched: bool) -> Callable[..., tuple[Array, ...]]:
    """<grad, df/dx> by central differences: (f(x + h) - f(x - h)) / 2 h, with h = eps^(1/3) max(1, |x|)."""

    def backward(grad: Array, *x: Array) -> tuple[Array, ...]:
        return tuple(input_gradient(grad, x, i) for i in range(len(x)))

    def input_gradient(grad: Array, x: tuple[Array, ...], i: int) -> Array:
        result, shifted = np.zeros_like(x[i]), [a.copy() for a in x]
        # shifted together: one element, or one entry of the last axis in every row
        by_row = batched and x[i].ndim
        indices = [(..., k) for k in range(x[i].shape[-1])] if by_row else np.ndindex(x[i].shape)
        for index in indices:
            h = np.cbrt(np.finfo(x[i].dtype).eps) * np.maximum(1, np.abs(x[i][index]))
            values = []
            for sign in (1, -1):
                shifted[i][index] = x[i][index] + sign * h
                values.append(np.asarray(function(*shifted), dtype=np.float64))
            shifted[i][index] = x[i][index]
            difference = grad * (values[0] - values[1])  # summed over the axes that a step does not have
            result[index] = difference.reshape(*result[index].shape, -1).sum(-1) / (2 * h)
        return result

    return backward
