"""Degenerate gradients: NaN, infinite, zero, vanishing, exploding."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from torchcommodity.opkit._diagnose.findings import Finding
from torchcommodity.opkit._diagnose.trace import Trace, all_finite

VANISHING = 1e-9  # largest gradient of a layer, relative to the largest layer's
EXPLODING = 1e5  # norm of a gradient, relative to its parameter's


def check_gradients(
    gradients: Mapping[str, Tensor], parameters: Mapping[str, Tensor], loss: Tensor, trace: Trace
) -> list[Finding]:
    invalid = [name for name, g in gradients.items() if not g.isfinite().all()]
    if invalid:
        return [_not_finite(invalid, gradients, _locate_not_finite(loss, parameters, trace))]
    zero = [name for name, g in gradients.items() if g.numel() and not g.any()]
    sizes = {name: g.abs().max().item() for name, g in gradients.items() if g.numel() and name not in zero}
    return _zero(zero, list(parameters), trace) + _vanishing(sizes) + _exploding(gradients, parameters)


def compute_gradients(
    loss: Tensor, parameters: list[Tensor], trace: Trace
) -> tuple[list[Tensor | None], Finding | None]:
    """Gradient of each parameter, or a finding if a Tensor was changed in place."""
    if not loss.requires_grad:
        return [None] * len(parameters), None
    try:
        return list(torch.autograd.grad(loss, parameters, allow_unused=True, retain_graph=True)), None
    except RuntimeError as error:
        if "inplace operation" not in str(error):
            raise
        return [], _in_place(str(error), trace)


def _in_place(error: str, trace: Trace) -> Finding:
    """The last in-place change of a Tensor with the shape in autograd's message."""
    match = re.search(r"\[([\d, ]*)\]", error)
    shape = tuple(int(n) for n in match[1].split(",") if n.strip()) if match else ()
    changes = [event for event in trace.events if event.kind == "in_place"]
    candidates = [event for event in changes if event.shape == shape] or changes
    location = candidates[-1].location if candidates else ""
    message = "a Tensor that the backward pass needs is changed in place"
    return Finding("in_place", message, "write y = f(x) instead of x.f_() or x[i] = y, or clone first", (), location)


def _not_finite(invalid: list[str], gradients: Mapping[str, Tensor], location: str) -> Finding:
    nan = any(gradients[name].isnan().any() for name in invalid)
    kind, word = ("nan_gradient", "NaN") if nan else ("infinite_gradient", "infinite")
    fix = "keep arguments of sqrt, log and division inside their domain: clamp or torch.where before, not after"
    return Finding(kind, f"gradients are {word}", fix, tuple(invalid), location)


def _locate_not_finite(loss: Tensor, parameters: Mapping[str, Tensor], trace: Trace) -> str:
    """The first line with a result that is not finite, or else with a backward pass that is not."""
    if trace.not_finite or not loss.grad_fn:
        return trace.not_finite
    locations, handles, stack, visited = list[str](), list[Any](), [loss.grad_fn], set[Any]()
    while stack:
        function = stack.pop()
        if function not in visited:
            visited.add(function)
            stack += [f for f, _ in function.next_functions if f]
            handles.append(function.register_hook(_not_finite_hook(trace.lines.get(function, ""), locations)))
    torch.autograd.grad(loss, list(parameters.values()), allow_unused=True, retain_graph=True)
    for handle in handles:
        handle.remove()
    return locations[0] if locations else ""


def _not_finite_hook(location: str, locations: list[str]) -> Callable[..., None]:
    def hook(grad_inputs: tuple[Tensor | None, ...], grad_outputs: tuple[Tensor | None, ...]) -> None:
        results, incoming = ([g for g in gradients if g is not None] for gradients in (grad_inputs, grad_outputs))
        if location and all_finite(incoming) and not all_finite(results):
            locations.append(location)

    return hook


def _zero(zero: list[str], names: Sequence[str], trace: Trace) -> list[Finding]:
    """Zero because of a step function. Other zeros (a bias before a normalization, inactive units) are not errors."""
    parameters: dict[str, list[str]] = {}
    for name in zero:
        bit = 1 << names.index(name)
        step = next((event for event in trace.events if event.kind == "rounding" and event.sources & bit), None)
        if step:
            parameters.setdefault(step.location, []).append(name)
    message, fix = "a step function has a zero gradient everywhere", "use a smooth function or a straight-through one"
    steps = [Finding("rounding", message, fix, tuple(group), location) for location, group in parameters.items()]
    return steps + _zero_layers([name for name in zero if not any(name in g for g in parameters.values())], names)


def _zero_layers(zero: Sequence[str], names: Sequence[str]) -> list[Finding]:
    """Layers with zero gradients only: for one step, as before a head initialized to zero, or for good."""
    layers: dict[str, list[str]] = {}
    for name in names:
        layers.setdefault(name.rpartition(".")[0], []).append(name)
    affected = tuple(name for parameters in layers.values() if set(parameters) <= set(zero) for name in parameters)
    message = "every gradient is exactly zero"
    fix = "look for a factor of zero after it, such as a head or gate that is initialized to zero"
    return [Finding("zero_gradient", message, fix, affected, severity="note")] if affected else []


def _vanishing(sizes: Mapping[str, float]) -> list[Finding]:
    largest = max((size for name, size in sizes.items() if "bias" not in name), default=0.0)
    small = tuple(name for name, size in sizes.items() if "bias" not in name and size < VANISHING * largest)
    if not small:
        return []
    fix = "normalize between layers, add skip connections, use ReLU-like activations, or another initialization"
    return [Finding("vanishing", f"gradients are below {VANISHING:g} of the largest layer's", fix, small)]


def _exploding(gradients: Mapping[str, Tensor], parameters: Mapping[str, Tensor]) -> list[Finding]:
    large = tuple(
        name
        for name, g in gradients.items()
        if torch.linalg.vector_norm(g) > EXPLODING * torch.linalg.vector_norm(parameters[name]).clamp(min=1)
    )
    if not large:
        return []
    fix = "scale inputs and targets, clip the gradient norm, or use a smaller initialization"
    return [Finding("exploding", f"gradients are more than {EXPLODING:g} times their weights", fix, large)]
