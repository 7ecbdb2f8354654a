"""Knowledge distillation: train a small network on the quantiles of a large network and on the targets."""

from dataclasses import replace

from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarLstmConfig, ModelConfig, build_model
from torchcommodity.training import FitConfig, ModelInputs, Teacher, TrainConfig, to_toml, train


def distill(
    teacher: Forecaster,
    inputs: ModelInputs,
    student: ModelConfig | None = None,
    config: TrainConfig | None = None,
    *,
    weight: float = 0.5,
    symmetry: float = 0.5,
    seed: int = 0,
) -> Forecaster:
    """Train a small network on the quantiles of `teacher` and on the targets, see `losses.distillation_loss`.

    The econometric part is the teacher's. The student corrects the horizons at which both the teacher corrects and the
    student improves the validation loss.

    Args:
        teacher: forecaster with a network.
        inputs: training and validation prices.
        student: config of a registered model with the teacher's `har`; a `HarLstm` with 4 hidden units if None.
        config: training settings; the defaults if None.
        weight: weight of the teacher's term in the loss, in [0, 1].
        symmetry: as in `FitConfig`.
        seed: as in `forecast.fit`.

    Returns:
        The student; the note of its record names the selected epoch, if any.

    Raises:
        ValueError: the student's econometric settings are not the teacher's, or the weight is out of range.

    References:
        Hinton, Vinyals, Dean (2015). Distilling the knowledge in a neural network. arXiv:1503.02531.
    """
    har = teacher.model.har.config
    student = student or HarLstmConfig(har, hidden=4)
    if student.har != har:
        raise ValueError(f"distill: student.har must equal the econometric settings of the teacher; got {student.har}")
    if not 0 <= weight <= 1:
        raise ValueError(f"distill: weight must be in [0, 1]; got {weight}")
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
