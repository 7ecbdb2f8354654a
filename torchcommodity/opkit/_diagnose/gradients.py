"""Gradients that are there and yet no use: NaN, infinite, zero, vanishing, exploding."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from torchcommodity.opkit._diagnose.findings import Finding
from torchcommodity.opkit._diagnose.trace import Trace, all_finite

VANISHING = 1e-9  # of a layer's largest gradient to that of the largest layer
EXPLODING = 1e5  # of the norm of a gradient to that of its parameter


def judged(
    gradients: Mapping[str, Tensor], parameters: Mapping[str, Tensor], loss: Tensor, trace: Trace
) -> list[Finding]:
    wrong = [name for name, g in gradients.items() if not g.isfinite().all()]
    if wrong:
        return [_not_finite(wrong, gradients, _poisoned(loss, parameters, trace))]
    zero = [name for name, g in gradients.items() if g.numel() and not g.any()]
    findings = _zero(zero, list(parameters), trace)
    sizes = {name: g.abs().max().item() for name, g in gradients.items() if g.numel() and name not in zero}
    findings += _vanishing(sizes)
    findings += _exploding(gradients, parameters)
    return findings


def gradients_of(loss: Tensor, parameters: list[Tensor], trace: Trace) -> tuple[list[Tensor | None], Finding | None]:
    if not loss.requires_grad:
        return [None] * len(parameters), None
    try:
        return list(torch.autograd.grad(loss, parameters, allow_unused=True, retain_graph=True)), None
    except RuntimeError as error:
        if "inplace operation" not in str(error):
            raise
        return [], _in_place(str(error), trace)


def _in_place(error: str, trace: Trace) -> Finding:
    """The last change in place of a Tensor of the shape that autograd complains of."""
    shape = re.search(r"\[([\d, ]*)\]", error)
    wanted = tuple(int(n) for n in shape[1].split(",") if n.strip()) if shape else ()
    changes = [event for event in trace.events if event.kind == "in_place"]
    fitting = [event for event in changes if event.shape == wanted] or changes
    where = fitting[-1].where if fitting else ""
    message = "a Tensor that the backward pass needs is changed in place"
    return Finding("in_place", message, "write y = f(x) in place of x.f_() or x[i] = y, or clone before", (), where)


def _not_finite(wrong: list[str], gradients: Mapping[str, Tensor], where: str) -> Finding:
    nan = any(gradients[name].isnan().any() for name in wrong)
    kind, word = ("nan_gradient", "NaN") if nan else ("infinite_gradient", "infinite")
    remedy = "keep arguments of sqrt, log and division inside their domain: clamp or torch.where before, not after"
    return Finding(kind, f"gradients are {word}", remedy, tuple(wrong), where)


def _poisoned(loss: Tensor, parameters: Mapping[str, Tensor], trace: Trace) -> str:
    """The first line that made no finite number; else the first whose backward pass does."""
    if trace.not_finite or not loss.grad_fn:
        return trace.not_finite
    first, handles, left, seen = list[str](), list[Any](), [loss.grad_fn], set[Any]()
    while left:
        function = left.pop()
        if function not in seen:
            seen.add(function)
            left += [f for f, _ in function.next_functions if f]
            handles.append(function.register_hook(_watch(trace.lines.get(function, ""), first)))
    torch.autograd.grad(loss, list(parameters.values()), allow_unused=True, retain_graph=True)
    for handle in handles:
        handle.remove()
    return first[0] if first else ""


def _watch(where: str, first: list[str]) -> Any:
    def hook(out: tuple[Tensor | None, ...], into: tuple[Tensor | None, ...]) -> None:
        made, given = ([g for g in gradients if g is not None] for gradients in (out, into))
        if where and all_finite(given) and not all_finite(made):
            first.append(where)

    return hook


def _zero(zero: list[str], names: Sequence[str], trace: Trace) -> list[Finding]:
    """Zero by a step function: other zeros (a bias before a normalization, units that are off) are no fault."""
    found: dict[str, list[str]] = {}
    for name in zero:
        bit = 1 << names.index(name)
        step = next((e for e in trace.events if e.kind == "rounding" and e.sources & bit), None)
        if step:
            found.setdefault(step.where, []).append(name)
    message, remedy = "a step function has gradient zero everywhere", "use a smooth one, or a straight-through estimate"
    steps = [Finding("rounding", message, remedy, tuple(what), where) for where, what in found.items()]
    return steps + _idle([name for name in zero if not any(name in what for what in found.values())], names)


def _idle(zero: Sequence[str], names: Sequence[str]) -> list[Finding]:
    """Whole layers: they may be idle for one step, as before a head that begins at zero, or for ever."""
    layers: dict[str, list[str]] = {}
    for name in names:
        layers.setdefault(name.rpartition(".")[0], []).append(name)
    idle = [name for own in layers.values() if set(own) <= set(zero) for name in own]
    message, remedy = (
        "every gradient is exactly zero",
        "look for a factor of zero after it: a head or gate that begins there",
    )
    return [Finding("zero_gradient", message, remedy, tuple(idle), severity="note")] if idle else []


def _vanishing(sizes: Mapping[str, float]) -> list[Finding]:
    largest = max((size for name, size in sizes.items() if "bias" not in name), default=0.0)
    small = [name for name, size in sizes.items() if "bias" not in name and size < VANISHING * largest]
    if not small:
        return []
    remedy = "normalize between layers, add skip connections, use ReLU-like activations, or another initialization"
    return [Finding("vanishing", f"gradients are below {VANISHING:g} of the largest layer's", remedy, tuple(small))]


def _exploding(gradients: Mapping[str, Tensor], parameters: Mapping[str, Tensor]) -> list[Finding]:
    large = [
        name
        for name, g in gradients.items()
        if torch.linalg.vector_norm(g) > EXPLODING * torch.linalg.vector_norm(parameters[name]).clamp(min=1)
    ]
    if not large:
        return []
    remedy = "scale inputs and targets, clip the gradient's norm, or initialize smaller"
    return [Finding("exploding", f"gradients are more than {EXPLODING:g} times their weights", remedy, tuple(large))]
