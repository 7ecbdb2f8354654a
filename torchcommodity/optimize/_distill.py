"""Knowledge distillation: train a small model on the outputs of a large one and on the targets."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._pytree import tree_map

from torch_opkit.arguments import check_number, operation, raise_invalid
from torchcommodity.forecast import Forecaster
from torchcommodity.losses import distillation_loss
from torchcommodity.optimize._batches import check_loss, raise_empty, root_of_horizons, split_batch, training_batches
from torchcommodity.optimize._module import (
    call_model,
    copy_module,
    describe,
    first_line,
    module_of,
    restored_mode,
    threads_of,
    with_module,
)
from torchcommodity.optimize._train import MakeOptimizer, keep_best_epoch, train_epochs
from torchcommodity.training import ModelInputs

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


@dataclass(frozen=True)
class Distillation:
    """A distilled student and how it was trained; prints as one line."""

    model: Any  # the student of the best epoch, in evaluation mode
    epoch: int  # the best epoch; 0: no epoch brought the student closer to the teacher
    losses: tuple[float, ...]  # mean training loss of every epoch
    distances: tuple[float, ...]  # teacher's term of the loss in validation: before, and after every epoch
    validated: bool  # whether the validation batches are others than those of training

    @property
    def improved(self) -> bool:
        """Whether the student came closer to the teacher."""
        return self.epoch > 0

    def __str__(self) -> str:
        batches = "validation" if self.validated else "training"
        first, epochs = self.distances[0], len(self.losses)
        if not self.improved:
            outcome = f"none of {epochs} epochs came closer to the teacher on the {batches} batches than {first:.3g}"
            return f"{outcome}: the student is returned as it was; try another learning rate or more epochs"
        last = self.distances[self.epoch]
        return f"epoch {self.epoch} of {epochs}: distance on the {batches} batches {first:.3g} -> {last:.3g}"


@operation("distill")
def distill(
    teacher: nn.Module | Forecaster,
    student: nn.Module | Forecaster,
    batches: Iterable[object] | ModelInputs,
    *,
    loss: Literal["quantile", "temperature"] | Callable[..., Tensor] = "quantile",
    levels: Sequence[float] | Tensor | None = None,
    temperature: float = 2.0,
    weight: float = 0.5,
    validation: Iterable[object] | None = None,
    epochs: int = 10,
    optimizer: MakeOptimizer = torch.optim.AdamW,
    learning_rate: float = 1e-3,
) -> Distillation:
    """Train a small model on the outputs of `teacher` and on the targets.

        quantile:     (1 - weight) pinball(q, target) + weight |q - q_teacher|
        temperature:  (1 - weight) cross-entropy(z, target) + weight T^2 KL(softmax(z_teacher / T) || softmax(z / T))

    The teacher runs in evaluation mode without gradients, the student is trained as a copy. The epoch that is closest
    to the teacher in validation is returned, or the student as it was if none is closer, and the result says so.

    The econometric part of a forecaster does not change.

    Args:
        teacher: any module, or a forecaster; not changed.
        student: a smaller module with outputs of the same shape, or a forecaster with the teacher's symbols, horizons
            and levels; not changed.
        batches: (inputs, target) or inputs alone, in an iterable that can be read once per epoch, see `prune`; or the
            prices of a forecaster: windows of them are the batches, the last fifth of the windows is the validation.
        loss: "quantile" for outputs (..., Q) and a target (...); "temperature" for logits (..., C) and a target of
            classes (...) or of probabilities (..., C); or loss(student_output, teacher_output, target). The first two
            take models that return an object with `.logits` as well; without a target, its `.loss` replaces the
            cross-entropy.
        levels: (Q,) quantile levels of the outputs, for "quantile"; None: those of a forecaster.
        temperature: T, for "temperature".
        weight: weight of the teacher's term in the loss, in [0, 1].
        validation: batches on which the distance to the teacher is measured; None: the training batches.
        epochs: passes over the batches.
        optimizer: a class of torch.optim, or a functools.partial of one.
        learning_rate: learning rate of the optimizer.

    Returns:
        A Distillation, whose model is a module or a forecaster, as the student.

    Raises:
        TypeError: teacher or student is not an nn.Module or a Forecaster, the batches are no batches, or a number is
            text.
        ValueError: the outputs of student and teacher differ in shape, two forecasters in symbols, horizons or levels,
            a loss is not a finite scalar, or a setting is out of range.

    References:
        Hinton, Vinyals, Dean (2015). Distilling the knowledge in a neural network. arXiv:1503.02531.

    Example:
        >>> import torch
        >>> from torchcommodity import optimize
        >>> teacher = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
        >>> student = torch.nn.Linear(4, 3)
        >>> batches = [(torch.randn(32, 4), torch.randint(3, (32,))) for _ in range(4)]
        >>> result = optimize.distill(teacher, student, batches, loss="temperature", epochs=5, learning_rate=0.01)
        >>> result.improved, len(result.losses), len(result.distances)
        (True, 5, 6)
    """
    check_number("distill", weight=weight, temperature=temperature, learning_rate=learning_rate)
    if not 0 <= weight <= 1:
        raise_invalid("distill", "weight must be in [0, 1]", weight=weight)
    scale = None
    if isinstance(teacher, Forecaster):
        levels = teacher.levels if levels is None else levels
        if isinstance(student, Forecaster):
            _check_same_forecasts(teacher, student)
        if isinstance(batches, ModelInputs):
            scale = root_of_horizons(teacher)
    data = training_batches(teacher, batches, validation)
    original, module = module_of(teacher), copy_module(student)
    criterion = make_distill_loss(loss, levels, temperature, scale)
    pair = _Pair(data.called(original), data.called(module), criterion, weight)
    settings: dict[str, Any] = {"epochs": epochs, "optimizer": optimizer, "learning_rate": learning_rate}
    training = train_epochs(module, data.training, pair.loss, **settings)
    later = None if data.validation is None else list(data.validation)
    argument, measured = ("batches", data.training) if later is None else ("validation", later)
    with threads_of(teacher), restored_mode(original):
        original.eval()
        epoch, losses, distances = keep_best_epoch(module, lambda: pair.distance(argument, measured), training)
    note = f"distilled from {type(original).__name__}, epoch {epoch} of {len(losses)}"
    return Distillation(with_module(student, module.eval(), note), epoch, losses, distances, later is not None)


def _check_same_forecasts(teacher: Forecaster, student: Forecaster) -> None:
    for name in ("symbols", "horizons", "levels"):
        expected, received = getattr(teacher, name), getattr(student, name)
        if expected != received:
            raise_invalid("distill", f"the student must have the {name} of the teacher, {expected}", **{name: received})


@dataclass(frozen=True)
class _Pair:
    """Teacher and student, and the loss between them."""

    teacher: nn.Module
    student: nn.Module
    criterion: DistillLoss
    weight: float

    def loss(self, batch: object) -> Tensor:  # ()
        """Training loss of a batch."""
        return check_loss(self._loss(batch, self.weight))

    @torch.no_grad()
    def distance(self, name: str, batches: Iterable[object]) -> float:
        """Mean of the teacher's term over batches of this name, with the student in evaluation mode."""
        self.student.eval()
        losses = []
        for number, batch in enumerate(batches):
            loss = self._loss(batch, weight=1.0)
            if not isinstance(loss, Tensor) or loss.numel() != 1:
                raise_invalid("distill", "loss must return a scalar", loss=loss)
            losses.append(loss.item())
            if not math.isfinite(losses[-1]):
                rule = f"the loss must be finite; check the batch {name}[{number}] for NaN, or lower the learning rate"
                raise_invalid("distill", rule, loss=losses[-1])
        if not losses:
            raise_empty()
        return sum(losses) / len(losses)

    def _loss(self, batch: object, weight: float) -> Tensor:
        inputs, target = split_batch(batch)
        with torch.no_grad():
            expected = call_model(self.teacher, inputs)
        # a teacher may enable gradients in its own forward
        expected = tree_map(lambda x: x.detach() if isinstance(x, Tensor) else x, expected)
        output = call_model(self.student, inputs)
        # a loss of the caller's own takes any outputs, a named one refuses all but tensors
        if isinstance(output, Tensor) and isinstance(expected, Tensor) and output.shape != expected.shape:
            rule = "student and teacher must return the same shape; adapt the student's last layer"
            raise_invalid("distill", rule, student=output, teacher=expected)
        return self.criterion(output, expected, *target, weight=weight)
