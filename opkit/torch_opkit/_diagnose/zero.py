"""Gradients that are exactly zero: for good, which is a fault with a line, or only in the first step."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from torch_opkit._diagnose.backward import EMPTY, HOOKED, Edge
from torch_opkit._diagnose.findings import ModelFinding
from torch_opkit._diagnose.step import Problem, TrainingStep
from torch_opkit._diagnose.values import dense

STEPS, RANDOM_STEPS = 3, 8  # a gate that starts at zero opens in one step; one that is drawn at random, sometimes
SCALES = {torch.float16: 2.0**12, torch.bfloat16: 1e20, torch.float32: 1e20, torch.float64: 1e100}
FIX = "remove the factor, the mask or the constant, or initialize it to something else"
CAUSES: tuple[tuple[tuple[str, ...], str, str, str], ...] = (
    (
        ("Round", "Floor", "Ceil", "Trunc", "Sign", "Sgn", "Frac", "Heaviside"), "rounding",
        "a step function has a zero gradient everywhere", "use a smooth function or a straight-through one",
    ),
    (
        ("Relu", "Threshold", "Elu", "ClampMin", "Hardswish"), "dead_units",
        "the rectifier is zero for every sample", "use a smaller bias, a leaky activation, or normalized inputs",
    ),
    (
        ("Hardtanh", "Hardsigmoid", "Sigmoid", "Tanh", "Erf"), "saturated_units",
        "every value is outside of the bounds", "scale the values into the bounds, or use bounds that have a slope",
    ),
    (
        ("Softmax", "LogSoftmax", "SafeSoftmax"), "zero_gradient",
        "the softmax is constant, as over an axis of length 1 or with one option far ahead",
        "check its dim, and the scale of the logits",
    ),
    (
        ("NativeLayerNorm", "NativeBatchNorm", "NativeGroupNorm", "FusedRmsNorm"), "zero_gradient",
        "the normalization is constant, as over a single value", "normalize over more than one value",
    ),
    (
        ("Normal", "Poisson", "Bernoulli", "Binomial", "Multinomial"), "not_differentiable",
        "a random draw has no gradient with respect to its parameters",
        "reparameterize: mean + scale * torch.randn_like(scale), or torch.distributions with rsample()",
    ),
    (("Mul", "Div"), "zero_gradient", "a factor is zero for every element", FIX),
    (
        ("Clamp", "Minimum", "Maximum"), "zero_gradient", "every value is outside of the bounds",
        "scale the values into the bounds, or use bounds that have a slope",
    ),
    (("Where", "MaskedFill", "MaskedScatter"), "zero_gradient", "the mask selects nothing of it", FIX),
    (("CopySlices", "Fill", "Zero", "Copy"), "zero_gradient", "every element is overwritten", FIX),
    (("Addmm", "Mm", "Bmm", "Mv", "Dot", "Conv", "Linear", "MkldnnRnn"), "zero_gradient",
     "the weights or the inputs that it is multiplied by are all zero",
        "initialize the weights at random; check the inputs"),
)  # fmt: skip
MODULE_HOOK = "BackwardHookFunctionBackward"
CHANCE = ("EmbeddingBackward", "IndexPutBackward")  # what the batch does not select, is not a fault


def first_cut(step: TrainingStep, name: str) -> Edge | None:
    """Where the gradient on its way to a parameter becomes zero, or None."""
    leaf = step.flow.leaves.get(id(step.parameters[name]))
    return next(iter(step.flow.cuts(leaf)), None) if leaf is not None else None


def zero_gradients(problem: Problem, first: TrainingStep) -> list[ModelFinding]:
    """Findings for parameters with zero gradients: notes if they are not zero after a few steps."""
    if not first.zero:
        return []
    (last, remaining), small, findings = _later(problem, first), list[str](), list[ModelFinding]()
    if remaining:  # not zero if the loss is multiplied by a large number
        dtype = problem.parameters[remaining[0]].dtype
        scaled = problem.step(SCALES.get(dtype, 1e20)).gradients
        gradients = ((name, scaled[name]) for name in remaining)
        small = [name for name, g in gradients if g is not None and bool(dense(g).nan_to_num(0, 0, 0).any())]
    if small:
        dtype = problem.parameters[small[0]].dtype
        message = f"gradients are too small for {str(dtype).removeprefix('torch.')}, and become zero"
        kind, fix = "vanishing", "normalize between layers, add skip connections, use ReLU-like activations"
        if dtype == torch.float16:
            kind, fix = "underflow", "scale the loss (torch.amp.GradScaler), or use bfloat16"
        findings.append(ModelFinding(kind, message, fix, tuple(small)))
    findings += _faults(problem, last, sorted({*remaining} - {*small}))
    if passing := tuple(name for name in first.zero if name not in remaining):
        message = "every gradient is exactly zero in the first step, and not in a later one"
        fix = "nothing: a head or gate that is initialized to zero has this effect"
        findings.append(ModelFinding("zero_gradient", message, fix, passing, severity="note"))
    return findings


def _later(problem: Problem, step: TrainingStep) -> tuple[TrainingStep, list[str]]:
    """The last of a few steps, and the parameters whose gradients were zero in all of them."""
    remaining = list(step.zero)
    for _ in range(RANDOM_STEPS if step.random else STEPS):
        problem.descend(step.gradients)
        following = problem.step()
        if following.error or following.not_finite:
            break
        step, remaining = following, [name for name in remaining if name in following.zero]
        if not remaining:
            break
    return step, remaining


def _faults(problem: Problem, step: TrainingStep, names: Sequence[str]) -> list[ModelFinding]:
    """Findings by the place where the chain of gradients is cut; notes where only this batch is to blame."""
    cuts = {}
    for name in names:
        edge = first_cut(step, name)
        by_chance = edge and (edge.state == EMPTY or type(edge.node).__name__.startswith(CHANCE))
        if edge and not by_chance and not _has_learning_alternative(step, name, names):
            cuts[name] = edge
    findings, unexplained = cut_findings(problem, step, cuts), tuple(name for name in names if name not in cuts)
    if unexplained:
        if any(g is not None and name not in step.zero for name, g in step.gradients.items()):
            message = "every gradient is exactly zero in this batch"
            findings.append(ModelFinding("zero_gradient", message, FIX, unexplained, severity="note"))
        else:  # no parameter learns at all
            location = step.trace.place_of(step.loss).location
            findings.append(ModelFinding("zero_gradient", "every gradient is exactly zero", FIX, unexplained, location))
    return findings


def cut_findings(problem: Problem, step: TrainingStep, cuts: Mapping[str, Edge]) -> list[ModelFinding]:
    """Findings by the line of the node at which the gradient becomes zero, or of the hook that zeroes it."""
    groups = defaultdict[tuple[str, str, str, str], list[str]](list)
    for name, edge in cuts.items():
        (kind, text, fix), location = _cause(edge), ""
        if edge.state == HOOKED:
            hooks = getattr(getattr(edge.node, "variable", None), "_backward_hooks", None)
            calls = (place.location for _, place in step.trace.calls if place.function == "register_hook")
            location = next(_hook_lines(hooks), "") or next(calls, "")
        elif type(edge.node).__name__ == MODULE_HOOK:
            modules = problem.model.modules()
            location = next((line for module in modules for line in _hook_lines(module._backward_hooks)), "")
        groups[kind, text, fix, location or edge.place.location].append(name)
    return [ModelFinding(kind, text, fix, tuple(group), where) for (kind, text, fix, where), group in groups.items()]


def _hook_lines(hooks: Mapping[int, Any] | None) -> Iterator[str]:
    """Where hooks of the user are defined."""
    for hook in (hooks or {}).values():
        code = getattr(hook, "__code__", None)
        yield f"{code.co_filename}:{code.co_firstlineno}" if code else ""


def _cause(edge: Edge) -> tuple[str, str, str]:
    """Kind, message and fix, by the node at which the gradient becomes zero."""
    node, function = type(edge.node).__name__, edge.place.function
    consequence = "so what was computed before has gradients of exactly zero"
    if edge.state == HOOKED:
        return "zero_gradient", f"a hook of a Tensor returns zero, {consequence}", "remove the hook"
    if node == MODULE_HOOK:
        return "zero_gradient", f"a backward hook of a layer returns zero, {consequence}", "remove the hook"
    if hasattr(type(edge.node), "_forward_cls"):
        message = f"the backward of {function} returns zero or None, {consequence}"
        return "wrong_backward", message, "return the gradient of each argument"
    for prefixes, kind, message, fix in CAUSES:
        if node.startswith(prefixes):
            return kind, f"{function}: {message}, {consequence}", fix
    return "zero_gradient", f"{function}: its derivative is zero for these values, {consequence}", FIX


def _has_learning_alternative(step: TrainingStep, name: str, zero: Sequence[str]) -> bool:
    """Whether an element beside it in a container learns, and is no later layer of the same path: another expert."""
    names, parts = list(step.parameters), name.split(".")
    bit = 1 << names.index(name)
    for i, other in enumerate(names):
        others = other.split(".")
        different = [part for part, its_part in zip(parts, others) if part != its_part]
        # one index only, as in `experts.0.weight` and `experts.1.weight`
        is_element = len(parts) == len(others) and len(different) == 1 and different[0].isdigit()
        if is_element and other not in zero and not step.trace.used_with.get(1 << i, 0) & bit:
            return True
    return False
