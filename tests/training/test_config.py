"""TrainConfig, FitConfig, check_fit: limits are named in the error."""

from typing import Any

import pytest

from torchcommodity.models import HarConfig, HarLstmConfig
from torchcommodity.training import FitConfig, TrainConfig


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("epochs", -1, "epochs must be at least 0; got -1"),
        ("patience", 0, "patience must be at least 1; got 0"),
        ("batch_size", 0, "batch_size must be at least 1; got 0"),
        ("micro_batches", 0, "micro_batches must be at least 1; got 0"),
        ("num_workers", -1, "num_workers must be at least 0; got -1"),
        ("gradient_clip", 0.0, r"gradient_clip must be positive; got 0\.0"),
        ("learning_rate", float("nan"), "learning_rate must be positive; got nan"),
        ("weight_decay", -0.1, r"weight_decay must be at least 0; got -0\.1"),
        ("validation_fraction", 1.0, r"validation_fraction must be in \(0, 1\); got 1\.0"),
    ],
)
def test_train_config_rejects_values_out_of_range(name: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"TrainConfig: {message}"):
        TrainConfig(**{name: value})


def test_fit_config_symmetry_takes_levels_that_are_not_symmetric() -> None:
    assert FitConfig(HarLstmConfig(HarConfig(levels=(0.1, 0.5)))).symmetry == 0.5
    with pytest.raises(ValueError, match=r"symmetry must be in \[0, 1\]; got 2"):
        FitConfig(symmetry=2)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("epochs", "3", "epochs must be an integer; got '3'"),
        ("max_horizon", 6.5, "max_horizon must be an integer; got 6.5"),
        ("gradient_clip", "1", "gradient_clip must be a number; got '1'"),
        ("precision", "fp16", "precision must be one of 32-true, bf16-mixed, 16-mixed; got 'fp16'"),
        ("matmul_precision", "tf32", "matmul_precision must be one of highest, high, medium; got 'tf32'"),
    ],
)
def test_train_config_rejects_other_types_and_names(name: str, value: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^TrainConfig: {message}$"):
        TrainConfig(**{name: value})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "har-tcn"}, r"model must be the config .*default_config\('har-tcn'\); got 'har-tcn'"),
        ({"model": HarLstmConfig}, "model must be the config of a model"),
        ({"train": {"epochs": 1}}, r"train must be a TrainConfig, such as .*; got \{'epochs': 1\}"),
    ],
)
def test_fit_config_rejects_other_types(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=f"^FitConfig: {message}"):
        FitConfig(**settings)
