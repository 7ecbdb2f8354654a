"""A small forecaster learns from a large one: its quantiles and the truth."""

from dataclasses import replace

from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarLstmConfig, ModelConfig, build_model
from torchcommodity.training import ModelInputs, Teacher, TrainConfig, train


def distill(
    teacher: Forecaster,
    past: ModelInputs,
    student: ModelConfig | None = None,
    config: TrainConfig | None = None,
    *,
    weight: float = 0.5,
    symmetry: float = 0.5,
    seed: int = 0,
) -> Forecaster:
    """Train a small network on the quantiles of `teacher` and on what came true, see `losses.distillation_loss`.

    The econometric part is the teacher's. The student corrects those of the teacher's horizons at which it came nearer
    to teacher and truth than the econometric baseline, on held-back rows.

    Args:
        teacher: with a network.
        past: prices up to the last row that may be learned from.
        student: any registered model's config with the teacher's `har`; a HarLstm of 4 hidden units if None.
        config: of the training; the defaults if None.
        weight: of the teacher against the truth, in [0, 1].
        symmetry, seed: as in `forecast.fit`.

    Returns:
        the student; the note of its record says which epoch was kept, and if none was.

    Raises:
        ValueError: the student's econometric settings are not the teacher's; the weight is out of range.

    References:
        Hinton, Vinyals, Dean (2015). Distilling the knowledge in a neural network. arXiv:1503.02531.
    """
    har = teacher.model.har.config
    student = student or HarLstmConfig(har, hidden=4)
    if student.har != har or not 0 <= weight <= 1:
        raise ValueError(
            "distill: expected the teacher's econometric settings and a weight in [0, 1]; "
            f"got {'the same' if student.har == har else 'other'} settings and weight={weight}"
        )
    model = build_model(student, len(teacher.symbols), seed)
    found = train(model, past, config or TrainConfig(), symmetry, seed, teacher=Teacher(teacher.model.eval(), weight))
    helped = model.har.shrink > 0
    model.har.load_state_dict(teacher.model.har.state_dict())
    model.har.shrink.mul_(helped)
    note = f"distilled from {type(teacher.model).__name__}: {found.note}"
    record = replace(teacher.record, epoch=found.epoch, validation=found.validation, note=note)
    return replace(teacher, model=model.eval(), record=record)
