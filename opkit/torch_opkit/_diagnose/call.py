"""Call a model and its loss function, whatever their signatures and the structure of the batch.

Every function of the user is called from this file, so that frames and tracebacks can be cut here.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.utils._pytree import tree_map

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
MODEL_NAMES = {"model", "module", "net", "network"}
BATCH_NAMES = {"batch", "data", "sample", "samples"}
TARGET_NAMES = ("target", "targets", "label", "labels", "y")
LOSS_SIGNATURES = "loss_fn(output, target), loss_fn(output), loss_fn(model, batch), loss_fn(batch) or loss_fn()"


class BatchMismatchError(ValueError):
    """The batch does not have what the loss function takes."""


class Signature(NamedTuple):
    """Names of the required positional parameters, of all of them, and of the required keyword-only ones."""

    required: tuple[str, ...]
    positional: tuple[str, ...]
    keywords: tuple[str, ...] = ()
    variadic: bool = False
    named: frozenset[str] = frozenset()
    model_first: bool = False


def first_batch(batch: object) -> Any:
    """The first batch of a data loader or iterator; anything else is a batch already."""
    if isinstance(batch, Tensor | Mapping | Sequence | nn.Module) or not hasattr(batch, "__iter__"):
        return batch
    for item in batch:
        return item
    raise ValueError("diagnose: batch must have at least one item; got an empty iterator. Pass one batch, or a loader")


def fresh(batch: object) -> Any:
    """Copies of the Tensors, so that a model that changes its inputs does not change the caller's."""

    def copy(x: object) -> Any:
        if not isinstance(x, Tensor) or x.is_inference():
            return x
        return x.detach().clone().requires_grad_(x.requires_grad)

    return tree_map(copy, batch)


def compute_loss(model: nn.Module, batch: Any, loss_fn: Callable[..., Any] | None) -> Any:
    """The loss of a batch, by the signature of the loss function."""
    if loss_fn is None:
        return _loss_in(_output(model, _inputs(model, batch, None)[0]))
    signature = _signature(loss_fn)
    if not (signature.positional or signature.keywords or signature.variadic):
        return loss_fn()
    if signature.model_first:
        if len(signature.required) > 2:
            parts = [batch[name] for name in signature.required[1:]] if isinstance(batch, Mapping) else batch
            return loss_fn(model, *parts)
        return loss_fn(model, batch) if len(signature.positional) > 1 or signature.variadic else loss_fn(model)
    if len(signature.required) == 1 and signature.required[0] in BATCH_NAMES:
        return loss_fn(batch)
    inputs, targets = _inputs(model, batch, signature)
    required = signature.required or signature.keywords
    if len(required) - 1 > len(targets) and not isinstance(batch, Mapping):
        parameters = ", ".join(required)
        raise BatchMismatchError(
            f"diagnose: loss_fn takes ({parameters}), but the batch has {len(targets)} targets after the inputs of the "
            f"model. Expected one of {LOSS_SIGNATURES}; pass batch=(inputs, target), with a tuple for several inputs"
        )
    output = _output(model, inputs)
    if signature.keywords and not signature.positional:
        return loss_fn(**dict(zip(signature.keywords, (output, *targets))))
    return loss_fn(output, *_targets(signature, loss_fn, batch, targets))


def _targets(signature: Signature, loss_fn: Callable[..., Any], batch: object, targets: Sequence[Any]) -> Sequence[Any]:
    """What a loss takes after the output: by the names of its parameters if the batch has names, else what fits."""
    if isinstance(batch, Mapping) and len(signature.required) > 1:
        choices = [(name, *(TARGET_NAMES if name not in BATCH_NAMES else ())) for name in signature.required[1:]]
        return [next((batch[key] for key in keys if key in batch), batch) for keys in choices]
    of_torch = str(getattr(loss_fn, "__module__", "")).startswith("torch.nn")  # options such as `weight` follow
    names = signature.required if of_torch and signature.required else signature.positional
    return targets if signature.variadic else targets[: max(len(names) - 1, 0)]


def _inputs(model: nn.Module, batch: object, loss: Signature | None) -> tuple[Any, Sequence[Any]]:
    """Inputs of the model and targets of the loss, if there is one.

    A model that needs k Tensors takes the first k of the batch; with *args, all that the loss leaves.
    """
    if isinstance(batch, tuple | list | Mapping) and not batch:
        got = f"an empty {type(batch).__name__}"
        raise BatchMismatchError(f"diagnose: batch must hold the inputs of the model; got {got}. Pass (inputs, target)")
    if not isinstance(batch, tuple | list):
        return batch, ()
    signature = _signature(_wrapped(model).forward)
    count = len(signature.required if loss else signature.positional)
    if signature.variadic:
        names = (loss.required or loss.keywords) if loss else ()
        targets = (
            0 if loss is None else len(names) - 1 if names else 1
        )  # one, if the signature of the loss does not say
        count = max(count, len(batch) - targets)
    if isinstance(batch[0], tuple | Mapping) or count < 2:
        return batch[0], batch[1:]
    return tuple(batch[:count]), batch[count:]


def _wrapped(model: nn.Module) -> Any:
    """The module whose signature says what a compiled or parallel one takes."""
    if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
        return _wrapped(model.module)
    return getattr(model, "_orig_mod", model)


def _output(model: nn.Module, inputs: object) -> Any:
    if isinstance(inputs, tuple):
        return model(*inputs)
    if isinstance(inputs, Mapping):
        signature = _signature(model.forward)
        accepted = {key: value for key, value in inputs.items() if key in signature.named or "**" in signature.named}
        return model(**accepted) if accepted else model(inputs)
    return model(inputs)


def _loss_in(value: object) -> Any:
    """The loss in what a model returns: `loss` of an object or dict; the only scalar of a tuple."""
    if isinstance(value, Mapping) and "loss" in value:
        return value["loss"]
    if hasattr(value, "loss"):
        return value.loss
    if isinstance(value, tuple | list):
        scalars = [x for x in value if isinstance(x, Tensor) and x.dim() == 0 and x.requires_grad]
        return scalars[0] if len(scalars) == 1 else value
    return value


def _signature(function: Callable[..., Any]) -> Signature:
    target = function.forward if isinstance(function, nn.Module) else function
    try:
        parameters = list(inspect.signature(target).parameters.values())
    except (ValueError, TypeError):  # a builtin without a signature
        return Signature((), ("output", "target"), variadic=True)
    positional = [p for p in parameters if p.kind in POSITIONAL]
    keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    named = {p.name for p in parameters if p.kind in (POSITIONAL[1], inspect.Parameter.KEYWORD_ONLY)}
    named |= {"**"} if any(p.kind is p.VAR_KEYWORD for p in parameters) else set()
    required = tuple(p.name for p in positional if p.default is p.empty)
    model_first = False
    if positional:
        annotation = positional[0].annotation
        is_module = isinstance(annotation, type) and issubclass(annotation, nn.Module)
        model_first = is_module or positional[0].name in MODEL_NAMES or "Module" in str(annotation)
    names = tuple(p.name for p in positional)
    return Signature(required, names, tuple(keywords), variadic, frozenset(named), model_first)
