"""Distillation."""

from dataclasses import replace

import pytest
import torch

from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarLstmConfig
from torchcommodity.optimize import distill, model_size
from torchcommodity.training import ModelInputs, TrainConfig, from_toml


def test_distill_brings_the_student_closer_to_the_teacher_than_the_baseline(
    forecaster: Forecaster, inputs: ModelInputs, one_epoch: TrainConfig
) -> None:
    har, config = forecaster.model.har.config, replace(one_epoch, epochs=8, learning_rate=0.03, weight_decay=0.0)
    student = distill(forecaster, inputs, HarLstmConfig(har, hidden=3), config, weight=1.0)
    assert model_size(student).parameters < model_size(forecaster).parameters
    assert from_toml(student.record.settings).model == student.model.config
    change = student.record.validation[student.record.epoch - 1]
    assert min(change) < 0  # percent of the distance between baseline and teacher, in validation
    assert ((student.model.har.shrink > 0) == (torch.tensor(change) < 0)).all()
    assert student.record.corrected == tuple(h for h, x in zip(har.horizons, change) if x < 0)


def test_distill_rejects_other_econometric_settings_and_weight_out_of_range(
    forecaster: Forecaster, inputs: ModelInputs
) -> None:
    with pytest.raises(ValueError, match=r"distill: student\.har must equal the econometric settings of the teacher"):
        distill(forecaster, inputs, HarLstmConfig(hidden=3))
    with pytest.raises(ValueError, match=r"distill: weight must be in \[0, 1\]; got 2"):
        distill(forecaster, inputs, weight=2)
