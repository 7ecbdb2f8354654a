"""A model that is none of PyTorch's, as an operator: a NumPy function, an ONNX Runtime session, a fitted regressor."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from torchcommodity.opkit._op import Op

Gradient = Literal["none", "given", "finite-difference", "straight-through"]
Array = np.ndarray[Any, Any]


def external(
    model: Any,
    *,
    name: str,
    inputs: int = 1,
    fake: Callable[..., Tensor] | None = None,
    gradient: Gradient = "none",
    backward: Callable[..., Any] | None = None,
    batched: bool = False,
) -> Callable[..., Tensor]:
    """Make an operator of a model outside PyTorch; it is opaque, and can be compiled and exported around.

    Args:
        model: called with NumPy arrays in the dtype of the Tensors, it gives one array; or something with `.predict`
            (scikit-learn and its like: (..., F) to (...)); or an ONNX Runtime session: its first output.
        name: of the operator, "mine::ridge".
        inputs: how many Tensors it takes.
        fake: the shape of the result without values; None: that of the first input, without its last axis if the model
            has `.predict`.
        gradient: "given" by `backward`; "finite-difference", central, two calls for every input element, or for every
            element of the last axis if `batched`; "straight-through", which takes the model for the identity;
            "none": asking for one is an error, never a silent zero.
        backward: (gradient of the result, *inputs) -> gradient of each input, all NumPy arrays.
        batched: rows along the leading axes do not see each other: `vmap` is then one call.

    Raises:
        TypeError, ValueError: a model that cannot be called, settings that contradict each other.
        RuntimeError, when it runs: the result has another shape than `fake` says, or a gradient is asked for and there
            is none.

    Example:
        >>> import numpy as np, torch
        >>> from torchcommodity import opkit
        >>> sine = opkit.external(np.sin, name="doctest::sine", gradient="given", backward=lambda g, x: g * np.cos(x))
        >>> x = torch.zeros(2, requires_grad=True)
        >>> sine(x).sum().backward(); x.grad
        tensor([1., 1.])
    """
    if (backward is not None) != (gradient == "given"):
        raise ValueError(f'external: backward must be there for gradient="given", and only then; got {gradient!r}')
    predicts = hasattr(model, "predict")
    function, shape, batched = _callable(model), fake or (_one_less if predicts else _same), batched or predicts
    operator = partial(_operator, name, function, shape, inputs=inputs, batched=batched)
    if gradient == "straight-through":
        return operator(lambda grad, **_: (grad,) + (None,) * (inputs - 1))
    if gradient == "none":
        return operator(_refusal(name))
    slope = _slopes(function, batched) if gradient == "finite-difference" else backward
    if slope is None:
        kinds = ", ".join(get_args(Gradient))
        raise ValueError(f"external: gradient must be one of {kinds}; got {gradient!r}")
    back = _back(f"{name}_backward", slope, inputs, batched)
    return operator(lambda grad, **kept: back(grad, *kept.values()), keeps=True)


def _callable(model: Any) -> Callable[..., Any]:
    if hasattr(model, "get_inputs") and hasattr(model, "run"):
        return _session(model)
    if hasattr(model, "predict"):
        return lambda x: model.predict(x.reshape(-1, x.shape[-1])).reshape(x.shape[:-1])
    if not callable(model):
        raise TypeError(f"external: model must be callable, or have .predict or .run; got {type(model).__name__}")
    return model  # type: ignore[no-any-return]


def _session(session: Any) -> Callable[..., Any]:
    kinds = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64}
    taken = [(given.name, kinds[given.type]) for given in session.get_inputs()]
    return lambda *x: session.run(None, {name: a.astype(kind) for (name, kind), a in zip(taken, x)})[0]


def _same(x: Tensor, *_: Tensor) -> Tensor:
    return x.new_empty(x.shape)


def _one_less(x: Tensor, *_: Tensor) -> Tensor:
    return x.new_empty(x.shape[:-1])


def _operator(
    name: str, function: Callable[..., Any], fake: Callable[..., Tensor], backward: Any, *, inputs: int, batched: bool,
    keeps: bool = False,
) -> Callable[..., Tensor]:  # fmt: skip
    names = [f"x{i}" for i in range(inputs)]

    def reference(*tensors: Tensor) -> Tensor:
        first, expected = tensors[0], fake(*tensors)
        result = np.asarray(function(*[x.detach().cpu().numpy() for x in tensors]))
        if result.shape != tuple(expected.shape):
            raise RuntimeError(f"{name}: the model gave {result.shape}, its fake says {tuple(expected.shape)}")
        return torch.as_tensor(result.copy()).to(first.device, expected.dtype)

    def formula(grad: Tensor, **kept: Tensor) -> Any:
        return backward(grad, **kept)

    reference.__signature__ = _signature(names, inspect.Parameter.POSITIONAL_OR_KEYWORD)  # type: ignore[attr-defined]
    kept_names = names if keeps else []
    formula.__signature__ = _signature(kept_names, inspect.Parameter.KEYWORD_ONLY, "grad")  # type: ignore[attr-defined]
    return Op(
        name,
        reference=reference,
        fake=fake,
        backward=formula,
        vmap="batch" if batched else "loop",
        time=None,
        causal=False,
    )


def _signature(names: list[str], kind: Any, *before: str) -> inspect.Signature:
    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(n, plain, annotation=Tensor) for n in before]
    parameters += [inspect.Parameter(n, kind, annotation=Tensor) for n in names]
    return inspect.Signature(parameters, return_annotation=Tensor)


def _refusal(name: str) -> Callable[..., Any]:
    def raise_invalid(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f'{name}: the model has no gradient; make it by external(..., gradient="given") or another')

    return raise_invalid


def _back(name: str, slope: Callable[..., Any], inputs: int, batched: bool) -> Callable[..., Any]:
    """The gradient of each input, each an opaque operator of its own, whose gradient nobody knows."""

    def of(i: int) -> Callable[..., Tensor]:
        def gradient(grad: Array, *x: Array) -> Any:
            found = slope(grad, *x)
            return found[i] if isinstance(found, tuple) else found

        def shape(grad: Tensor, *x: Tensor) -> Tensor:
            return x[i].new_empty(x[i].shape)

        label = f"{name}_{i}" if inputs > 1 else name
        return _operator(label, gradient, shape, _refusal(label), inputs=inputs + 1, batched=batched)

    operators = [of(i) for i in range(inputs)]
    return lambda grad, *x: tuple(operator(grad, *x) for operator in operators)


def _slopes(function: Callable[..., Any], batched: bool) -> Callable[..., tuple[Array, ...]]:
    """<grad, df/dx> by central differences: (f(x + h) - f(x - h)) / 2 h, with h = eps^(1/3) max(1, |x|)."""

    def slopes(grad: Array, *x: Array) -> tuple[Array, ...]:
        return tuple(one(grad, x, i) for i in range(len(x)))

    def one(grad: Array, x: tuple[Array, ...], i: int) -> Array:
        result, moved = np.zeros_like(x[i]), [a.copy() for a in x]
        for at in _steps(x[i], batched):
            h = np.cbrt(np.finfo(x[i].dtype).eps) * np.maximum(1, np.abs(x[i][at]))
            values = []
            for sign in (1, -1):
                moved[i][at] = x[i][at] + sign * h
                values.append(np.asarray(function(*moved), dtype=np.float64))
            moved[i][at] = x[i][at]
            difference = grad * (values[0] - values[1])
            result[at] = _summed(difference, result[at].shape) / (2 * h)
        return result

    return slopes


def _steps(x: Array, batched: bool) -> list[Any]:
    """What is moved at once: an element, or one of the last axis in every row."""
    return [(..., k) for k in range(x.shape[-1])] if batched and x.ndim else list(np.ndindex(x.shape))


def _summed(difference: Array, shape: tuple[int, ...]) -> Any:
    """Over the axes that a step does not have: all of them for one element, those of the result for rows."""
    return difference.reshape(*shape, -1).sum(-1)
