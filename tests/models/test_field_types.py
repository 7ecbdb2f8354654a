"""Configs reject values of another type, and numbers that no model can have, where they are built."""

import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from torchcommodity.models import (
    MODELS,
    GarchLstmConfig,
    HarAttentionConfig,
    HarConfig,
    HarLstmConfig,
    HarTcnConfig,
    PortfolioLstmConfig,
    ScenarioGanConfig,
)
from torchcommodity.portfolio import PortfolioTrainConfig
from torchcommodity.scenarios import AdversarialConfig, ScenarioFitConfig
from torchcommodity.training import TrainConfig

CONFIGS: list[Any] = [entry.config for entry in MODELS.values()]
CONFIGS += [HarConfig, PortfolioLstmConfig, PortfolioTrainConfig, ScenarioGanConfig, ScenarioFitConfig]
CONFIGS += [AdversarialConfig, TrainConfig]


@pytest.mark.parametrize("config", CONFIGS)
def test_config_rejects_another_type_in_every_field(config: Any) -> None:
    for field in fields(config):
        with pytest.raises((TypeError, ValueError), match=f"^{config.__name__}: {field.name} must be .*; got <object"):
            config(**{field.name: object()})


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: HarConfig(horizons=21), "HarConfig: horizons must be a tuple, each entry an integer; got 21"),  # type: ignore[arg-type]
        (lambda: HarConfig(warmup=1.5), "HarConfig: warmup must be an integer; got 1.5"),  # type: ignore[arg-type]
        (lambda: HarConfig(cap=float("nan")), "HarConfig: cap must be positive; got nan"),
        (lambda: HarConfig(frequency="hourly"), "HarConfig: frequency must be one of daily, weekly, monthly"),  # type: ignore[arg-type]
        (lambda: HarLstmConfig(hidden=0), "HarLstmConfig: hidden must be positive; got 0"),
        (lambda: HarLstmConfig(hidden=True), "HarLstmConfig: hidden must be an integer; got True"),
        (lambda: GarchLstmConfig(halflives=(5.0, 0.0)), "GarchLstmConfig: halflives must be positive; got (5.0, 0.0)"),
        (lambda: GarchLstmConfig(persistence=1), "GarchLstmConfig: persistence must be in (0, 1); got 1"),
        (lambda: HarAttentionConfig(heads=3), "heads must be a divisor of hidden; got heads=3, hidden=8"),
        (lambda: HarTcnConfig(dropout=1.0), "HarTcnConfig: dropout must be in [0, 1); got 1.0"),
        (lambda: PortfolioTrainConfig(epochs="3"), "PortfolioTrainConfig: epochs must be an integer; got '3'"),  # type: ignore[arg-type]
    ],
)
def test_config_says_what_is_expected(build: Callable[[], object], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        build()
