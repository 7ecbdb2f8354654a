"""Degenerate gradients: NaN, infinite, vanishing, exploding."""

import torch
from torch import Tensor

from torch_opkit._diagnose.findings import ModelFinding
from torch_opkit._diagnose.finite import NonFiniteOrigin
from torch_opkit._diagnose.locations import Place
from torch_opkit._diagnose.step import TrainingStep
from torch_opkit._diagnose.values import dense, is_finite

VANISHING = 1e-9  # largest gradient of a layer, relative to the largest layer's
EXPLODING = 1e5  # norm of a gradient, relative to its parameter's
FIX_DOMAIN = "keep arguments of sqrt, log and division inside their domain: clamp or torch.where before, not after"
ORIGINS = {  # kind of origin -> kind, message, fix
    "batch": ("input_not_finite", "the batch has values that are NaN or infinite", "clean or mask them"),
    "parameter": (
        "parameter_not_finite", "parameters are NaN or infinite before the first step",
        "initialize them: torch.empty has arbitrary values; and look for a step that went wrong",
    ),
}  # fmt: skip


def loss_faults(step: TrainingStep) -> list[ModelFinding]:
    """A loss that backward() does not take: a number, several elements, an integer, a complex number."""
    loss, location = step.loss, step.trace.place_of(step.loss).location
    if not isinstance(loss, Tensor):
        location = next((event.location for event in reversed(step.trace.events) if event.kind == "python"), "")
        message = f"the loss is a {type(loss).__name__}, not a Tensor, so it has no gradient"
        return [ModelFinding("not_a_tensor", message, "return one Tensor; call .item() only to print it", (), location)]
    if loss.numel() != 1:
        message = f"the loss has shape {tuple(loss.shape)}, and backward() needs a scalar"
        return [ModelFinding("not_scalar", message, "reduce it: loss.mean()", (), location)]
    if loss.is_complex():
        message = "the loss is complex, and backward() needs a real one"
        return [ModelFinding("complex_loss", message, "loss.abs()", (), location)]
    return []


def not_finite(step: TrainingStep) -> list[ModelFinding]:
    """A finding if the loss or a gradient is NaN or infinite, with the line where that begins."""
    loss, names = step.loss, step.not_finite
    if not names and (not isinstance(loss, Tensor) or is_finite(loss)):
        return []
    origin: NonFiniteOrigin | None = step.finite.origins.get(loss)
    if origin is None:  # of a finite loss, the first line with a backward pass that is not finite
        place = next((place for place in step.flow.not_finite if place.location), None)
        known = None if place else step.finite.last
        origin = known or NonFiniteOrigin(place or next(iter(step.flow.not_finite), Place()))
    if origin.kind in ORIGINS:
        kind, message, fix = ORIGINS[origin.kind]
        return [ModelFinding(kind, message, fix, (origin.name,))]
    gradients = [g for name in names if (g := step.gradients[name]) is not None] or [loss]
    nan = any(bool(dense(g).isnan().any()) for g in gradients)
    kind, word = ("nan_gradient", "NaN") if nan else ("infinite_gradient", "infinite")
    what = "gradients are" if names else "the loss is"
    return [ModelFinding(kind, f"{what} {word}", FIX_DOMAIN, tuple(names), origin.place.location)]


def sizes(step: TrainingStep) -> list[ModelFinding]:
    """Findings for gradients that are too small or too large."""
    gradients = {name: dense(g) for name, g in step.gradients.items() if g is not None and name not in step.zero}
    gradients = {name: g for name, g in gradients.items() if g.numel()}
    norm = torch.linalg.vector_norm
    large = [name for name, g in gradients.items() if norm(g) > EXPLODING * norm(step.parameters[name]).clamp(min=1)]
    if large:
        fix = "scale inputs and targets, clip the gradient norm, or use a smaller initialization"
        message = f"gradients are more than {EXPLODING:g} times their weights"
        return [ModelFinding("exploding", message, fix, tuple(large))]
    maxima = {name: g.abs().max().item() for name, g in gradients.items() if "bias" not in name}
    largest = max(maxima.values(), default=0.0)
    small = [name for name, maximum in maxima.items() if maximum < VANISHING * largest]
    if small:
        fix = "normalize between layers, add skip connections, use ReLU-like activations, or another initialization"
        message = f"gradients are below {VANISHING:g} of the largest layer's"
        return [ModelFinding("vanishing", message, fix, tuple(small))]
    return []


def symmetric(step: TrainingStep) -> list[ModelFinding]:
    """Units with equal weights and equal gradients, which stay equal for good."""
    zero = set(step.zero)
    names = [
        name
        for name, g in step.gradients.items()
        if g is not None and name not in zero and _rows_are_equal(step.parameters[name]) and _rows_are_equal(g)
    ]
    if not names:
        return []
    message = "all units have the same weights and the same gradients, so they stay the same"
    fix = "initialize weights at random, as nn.Linear does by default"
    return [ModelFinding("symmetric_units", message, fix, tuple(names))]


def _rows_are_equal(x: Tensor) -> bool:
    if x.dim() < 2 or len(x) < 2:
        return False
    x = x.detach().to_dense()
    return torch.equal(x, x[:1].expand_as(x))
