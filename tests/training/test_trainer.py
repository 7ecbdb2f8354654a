"""Trainer: gradient accumulation and mixed precision."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import pytest

from torchcommodity import forecast
from torchcommodity.data import Panel
from torchcommodity.forecast import Forecaster
from torchcommodity.models import MODELS
from torchcommodity.training import FitConfig

Difference = Callable[[Forecaster, Forecaster], float]


@pytest.mark.parametrize("micro_batches", [2, 3, 5])
def test_trainer_micro_batches_give_the_same_result(
    panel: Panel, config: FitConfig, forecaster: Forecaster, max_difference: Difference, micro_batches: int
) -> None:
    accumulated = replace(config, train=replace(config.train, micro_batches=micro_batches))
    assert max_difference(forecast.fit(panel, accumulated, seed=3), forecaster) < 1e-5


@pytest.mark.parametrize("precision", ["bf16-mixed", "16-mixed"])
def test_trainer_mixed_precision_gives_nearly_the_same_result(
    panel: Panel,
    config: FitConfig,
    forecaster: Forecaster,
    max_difference: Difference,
    precision: Literal["bf16-mixed", "16-mixed"],
) -> None:
    mixed = forecast.fit(panel, replace(config, train=replace(config.train, precision=precision)), seed=3)
    assert 0 < max_difference(mixed, forecaster) < 0.03
    for change, expected in zip(mixed.record.validation, forecaster.record.validation, strict=True):
        assert change == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize("name", ["har-mlp-lstm", "har-orthogonal-lstm"])
def test_trainer_mixed_precision_works_with_native_operators(panel: Panel, config: FitConfig, name: str) -> None:
    train = replace(config.train, epochs=1, precision="bf16-mixed")
    fitted = forecast.fit(panel, FitConfig(MODELS[name].config(), train))
    assert len(fitted.record.validation) == 1


def test_trainer_float16_skips_steps_that_overflow(panel: Panel, config: FitConfig) -> None:
    # the scale starts at 65536 and the loss is large: the first steps overflow, and the scaler reduces the scale
    train = replace(config.train, epochs=1, precision="16-mixed", gradient_clip=1e-3)
    fitted = forecast.fit(panel, replace(config, train=train), seed=3)
    assert all(x.isfinite().all() for x in fitted.model.state_dict().values())
