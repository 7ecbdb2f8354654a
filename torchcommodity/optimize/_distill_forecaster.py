"""Distillation of a forecaster: a small network trained on the quantiles of a large one, validated on later rows."""

from dataclasses import replace

from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarLstmConfig, ModelConfig, build_model
from torchcommodity.training import FitConfig, ModelInputs, Teacher, TrainConfig, to_toml, train


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
