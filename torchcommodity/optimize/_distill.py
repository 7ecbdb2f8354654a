"""Knowledge distillation: train a small model on the outputs of a large one and on the targets."""

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, overload

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarLstmConfig, ModelConfig, build_model
from torchcommodity.opkit.arguments import check_number, operation, raise_invalid
from torchcommodity.optimize._batches import check_batches, check_loss, raise_empty, split_batch
from torchcommodity.optimize._calls import call_model
from torchcommodity.optimize._distill_losses import DistillLoss, make_distill_loss
from torchcommodity.optimize._module import copy_module, module_of, restored_mode
from torchcommodity.optimize._train import MakeOptimizer, train_epochs
from torchcommodity.training import FitConfig, ModelInputs, Teacher, TrainConfig, to_toml, train


@dataclass(frozen=True)
class Distillation:
    """A distilled student and how it was trained; prints as one line."""

    model: nn.Module  # the student of the best epoch, in evaluation mode
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


@overload
def distill(
    teacher: Forecaster,
    student: ModelConfig | None,
    batches: ModelInputs,
    *,
    weight: float = 0.5,
    config: TrainConfig | None = None,
    symmetry: float = 0.5,
    seed: int = 0,
) -> Forecaster: ...
@overload
def distill(
    teacher: nn.Module,
    student: nn.Module,
    batches: Iterable[object],
    *,
    loss: Literal["quantile", "temperature"] | Callable[..., Tensor] = "quantile",
    levels: Sequence[float] | Tensor | None = None,
    temperature: float = 2.0,
    weight: float = 0.5,
    validation: Iterable[object] | None = None,
    epochs: int = 10,
    optimizer: MakeOptimizer = torch.optim.AdamW,
    learning_rate: float = 1e-3,
) -> Distillation: ...
@operation("distill")
def distill(
    teacher: Any,
    student: Any,
    batches: Any,
    *,
    loss: Any = "quantile",
    levels: Any = None,
    temperature: float = 2.0,
    weight: float = 0.5,
    validation: Any = None,
    epochs: int = 10,
    optimizer: MakeOptimizer = torch.optim.AdamW,
    learning_rate: float = 1e-3,
    config: TrainConfig | None = None,
    symmetry: float = 0.5,
    seed: int = 0,
) -> Any:
    """Train a small model on the outputs of `teacher` and on the targets.

        quantile:     (1 - weight) pinball(q, target) + weight |q - q_teacher|
        temperature:  (1 - weight) cross-entropy(z, target) + weight T^2 KL(softmax(z_teacher / T) || softmax(z / T))

    The teacher runs in evaluation mode without gradients, the student is trained as a copy. The epoch that is closest
    to the teacher in validation is returned, or the student as it was if none is closer, and the result says so.

    A forecaster as teacher takes the config of a student and prices. The student's econometric part is the teacher's;
    it corrects the horizons at which both the teacher corrects and the student improves the validation loss.

    Args:
        teacher: any module, or a forecaster with a network; not changed.
        student: a smaller module with outputs of the same shape, not changed; of a forecaster the config of a
            registered model with the teacher's `har`, or None for a `HarLstm` with 4 hidden units.
        batches: (inputs, target) or inputs alone, in an iterable that can be read once per epoch, see `prune`; of a
            forecaster its training and validation prices.
        loss: "quantile" for outputs (..., Q) and a target (...); "temperature" for logits (..., C) and a target of
            classes (...) or of probabilities (..., C); or loss(student_output, teacher_output, target). The first two
            take models that return an object with `.logits` as well; without a target, its `.loss` replaces the
            cross-entropy.
        levels: (Q,) quantile levels of the outputs, for "quantile".
        temperature: T, for "temperature".
        weight: weight of the teacher's term in the loss, in [0, 1].
        validation: batches on which the distance to the teacher is measured; None: the training batches.
        epochs: passes over the batches.
        optimizer: a class of torch.optim, or a functools.partial of one.
        learning_rate: learning rate of the optimizer.
        config: of a forecaster: training settings; the defaults if None.
        symmetry: of a forecaster: as in `FitConfig`.
        seed: of a forecaster: as in `forecast.fit`.

    Returns:
        A Distillation; for a forecaster the student as a forecaster, whose record names the selected epoch, if any.

    Raises:
        TypeError: teacher, student and batches are not all of a module, or all of a forecaster, or a number is text.
        ValueError: the outputs of student and teacher differ in shape, a loss is not a finite scalar, a setting is out
            of range, or the econometric settings of a forecaster's student are not the teacher's.

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
    check_number("distill", weight=weight, temperature=temperature, learning_rate=learning_rate, symmetry=symmetry)
    if not 0 <= weight <= 1:
        raise_invalid("distill", "weight must be in [0, 1]", weight=weight)
    if isinstance(teacher, Forecaster):
        if isinstance(student, nn.Module | Forecaster) or not isinstance(batches, ModelInputs):
            rule = "a Forecaster is distilled into the config of a model, on prices (ModelInputs)"
            got = {"student": type(student).__name__, "batches": type(batches).__name__}
            raise_invalid("distill", rule, TypeError, **got)
        return distill_forecaster(teacher, student, batches, config, weight=weight, symmetry=symmetry, seed=seed)
    check_batches(batches, repeated=True)
    if validation is not None:
        check_batches(validation, repeated=False)
    teacher, student = module_of(teacher), copy_module(student)
    pair = _Pair(teacher, student, make_distill_loss(loss, levels, temperature), weight)
    training = train_epochs(
        student, batches, pair.loss, epochs=epochs, optimizer=optimizer, learning_rate=learning_rate
    )
    argument, validation_batches = ("batches", batches) if validation is None else ("validation", list(validation))
    losses: list[float] = []
    with restored_mode(teacher):
        teacher.eval()
        distances = [pair.distance(argument, validation_batches)]
        best = copy.deepcopy(student.state_dict())
        for mean_loss in training:
            losses.append(mean_loss)
            distances.append(pair.distance(argument, validation_batches))
            if distances[-1] < min(distances[:-1]):
                best = copy.deepcopy(student.state_dict())
    epoch = min(range(len(distances)), key=lambda k: distances[k])
    student.load_state_dict(best)
    return Distillation(student.eval(), epoch, tuple(losses), tuple(distances), validation is not None)


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


def distill_forecaster(
    teacher: Forecaster,
    student: ModelConfig | None,
    inputs: ModelInputs,
    config: TrainConfig | None,
    *,
    weight: float,
    symmetry: float,
    seed: int,
) -> Forecaster:
    """Train a student with the teacher's econometric part; see `distill`."""
    har = teacher.model.har.config
    student = student or HarLstmConfig(har, hidden=4)
    if student.har != har:
        raise ValueError(f"distill: student.har must equal the econometric settings of the teacher; got {student.har}")
    settings = FitConfig(student, config or TrainConfig.for_frequency(har.frequency), symmetry)
    model = build_model(student, len(teacher.symbols), seed)
    result = train(model, inputs, settings.train, symmetry, seed, teacher=Teacher(teacher.model.eval(), weight))
    improved = model.har.shrink > 0
    model.har.load_state_dict(teacher.model.har.state_dict())
    model.har.shrink.mul_(improved)
    note = f"distilled from {type(teacher.model).__name__}: {result.note}"
    record = replace(
        teacher.record,
        epoch=result.epoch,
        corrected=tuple(h for h, shrink in zip(har.horizons, model.har.shrink.tolist()) if shrink),
        validation=result.validation,
        note=note,
        settings=to_toml(settings),
    )
    return replace(teacher, model=model.eval(), record=record)
