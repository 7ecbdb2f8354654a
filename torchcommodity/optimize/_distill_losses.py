"""Losses of distillation: of logits at a temperature, of quantiles, or of your own."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from torchcommodity.losses import distillation_loss
from torchcommodity.opkit.arguments import raise_invalid
from torchcommodity.optimize._calls import describe, first_line

# loss(student, teacher, *target, weight): the output of each model, the batch's target if any, the teacher's weight
DistillLoss = Callable[..., Tensor]
IGNORED = -100  # class without a target, as in torch.nn.functional.cross_entropy
TOLERANCE = 0.01  # of a sum of probabilities in half precision


def make_distill_loss(
    loss: object, levels: Sequence[float] | Tensor | None, temperature: float, scale: Tensor | None = None
) -> DistillLoss:
    """Loss by name, or a function of your own without the argument `weight`; quantiles are divided by `scale`."""
    if loss == "temperature":
        if not temperature > 0:
            raise_invalid("distill", "temperature must be > 0", temperature=temperature)
        return lambda *outputs, weight: temperature_loss(*outputs, temperature=temperature, weight=weight)
    if loss == "quantile":
        if levels is None:
            rule = 'loss="quantile" needs levels, the quantile level of each output; for logits use loss="temperature"'
            raise_invalid("distill", rule, levels=None)
        taus, unit = torch.as_tensor(levels), torch.ones(()) if scale is None else scale
        return lambda *outputs, weight: quantile_loss(*outputs, levels=taus, scale=unit, weight=weight)
    if not callable(loss):
        rule = 'loss must be "quantile", "temperature" or loss(student_output, teacher_output, target)'
        raise_invalid("distill", rule, loss=loss)

    def own_loss(*outputs: object, weight: float) -> Tensor:
        try:
            result: Tensor = loss(*outputs)
        except Exception as error:
            names = ("student_output", "teacher_output", "target")[: len(outputs)]
            got = " and ".join(f"{name} {describe(x)}" for name, x in zip(names, outputs))
            rule = f"loss({', '.join(names)}) does not run on"
            raise ValueError(f"distill: {rule} {got}: {first_line(error)}") from error
        return result

    return own_loss


def temperature_loss(
    student: object,  # (..., C), or an output with logits (..., C)
    teacher: object,  # as the student
    target: Tensor | None = None,  # (...) classes, or (..., C) probabilities
    *,
    temperature: float,
    weight: float,
) -> Tensor:  # ()
    """weight T^2 KL(softmax(teacher / T) || softmax(student / T)) + (1 - weight) cross-entropy, means over the rows.

    T^2 keeps the size of the soft gradient, which falls with 1 / T^2. Without a target, the student's own
    loss takes the place of the cross-entropy: it knows how labels are shifted and masked. Without either, only the soft
    term is left.
    """
    own_loss = _field(student, "loss")
    logits, expected = (_logits("temperature", output) for output in (student, teacher))
    if target is not None and target.shape not in (logits.shape[:-1], logits.shape):
        rule = "the target must be classes (...) or probabilities (..., C) of logits (..., C), classes on the last axis"
        raise_invalid("distill", rule, logits=logits, target=target)
    if target is not None:
        _check_classes(target, logits)
    rows, soft_rows = logits.flatten(0, -2), expected.flatten(0, -2)
    log_student, log_teacher = (F.log_softmax(x / temperature, -1) for x in (rows, soft_rows))
    soft = temperature**2 * F.kl_div(log_student, log_teacher, reduction="batchmean", log_target=True)
    if target is None:
        return soft if own_loss is None else weight * soft + (1 - weight) * own_loss
    classes = target.flatten() if target.shape == logits.shape[:-1] else target.flatten(0, -2)
    return weight * soft + (1 - weight) * F.cross_entropy(rows, classes)


def _check_classes(target: Tensor, logits: Tensor) -> None:
    """Check the values of a target: cross-entropy takes any numbers for probabilities."""
    if target.shape != logits.shape:
        classes = logits.shape[-1]
        integers = not (target.is_floating_point() or target.is_complex() or target.dtype == torch.bool)
        if not integers or not ((target == IGNORED) | ((target >= 0) & (target < classes))).all():
            rule = f"a target (...) must hold classes, integers in [0, {classes - 1}], or {IGNORED} for none"
            raise_invalid("distill", rule, dtype=target.dtype, target=target)
        return
    sums = target.double().sum(-1)
    if not target.is_floating_point() or bool((target < 0).any()) or not ((sums - 1).abs() < TOLERANCE).all():
        rule = "a target (..., C) must hold probabilities, >= 0 with the sum 1; for regression pass a loss of your own"
        raise_invalid("distill", rule, target=target)


def quantile_loss(
    student: object,  # (..., Q), or an output with logits (..., Q)
    teacher: object,  # as the student
    target: Tensor | None = None,  # (...)
    *,
    levels: Tensor,  # (Q,)
    scale: Tensor,  # broadcasts to (...)
    weight: float,
) -> Tensor:  # ()
    """`losses.distillation_loss`; without a target only the teacher's term is left."""
    quantiles, expected = (_logits("quantile", output) for output in (student, teacher))
    quantiles, expected = (x / scale.to(x).unsqueeze(-1) for x in (quantiles, expected))
    target = None if target is None else target / scale.to(target)
    if target is None:
        target, weight = quantiles.new_full(quantiles.shape[:-1], torch.nan), 1.0
    return distillation_loss(quantiles, expected, target, levels.to(quantiles), weight=weight)


def _logits(loss: str, output: object) -> Tensor:
    """The output, or its logits if it is an object or a mapping, as models of `transformers` return."""
    logits = output if isinstance(output, Tensor) else _field(output, "logits")
    if not isinstance(logits, Tensor):
        needed = f'loss="{loss}" needs models that return a Tensor or .logits'
        rule = f"{needed}; for others pass loss(student, teacher, target)"
        raise_invalid("distill", rule, TypeError, output=type(output).__name__)
    return logits


def _field(output: object, name: str) -> Any:
    return output.get(name) if isinstance(output, Mapping) else getattr(output, name, None)
