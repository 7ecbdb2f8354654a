"""TrainConfig, FitConfig, check_fit: limits are named in the error."""

from typing import Any

import pytest
import torch

from torchcommodity.models import HarConfig, HarLstmConfig
from torchcommodity.training import FitConfig, ModelInputs, TrainConfig, check_fit


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


def test_fit_config_symmetry_needs_symmetric_levels() -> None:
    model = HarLstmConfig(HarConfig(levels=(0.1, 0.5)))
    with pytest.raises(ValueError, match="levels must be symmetric about 1/2"):
        FitConfig(model)
    assert FitConfig(model, symmetry=0.0).symmetry == 0
    with pytest.raises(ValueError, match=r"symmetry must be in \[0, 1\]; got 2"):
        FitConfig(symmetry=2)


def test_check_fit_names_symbols_with_too_few_prices() -> None:
    prices = torch.ones(600, 3, dtype=torch.double)
    prices[:, 1] = torch.nan
    config = HarConfig()
    with pytest.raises(ValueError, match="must have positive prices; got none for B"):
        check_fit(ModelInputs(prices), ("A", "B", "C"), config)
    prices[:504, 1] = 1.0
    with pytest.raises(ValueError, match=r"at least 505 positive prices .*; got B 504"):
        check_fit(ModelInputs(prices), ("A", "B", "C"), config)
    with pytest.raises(ValueError, match="at least one symbol"):
        check_fit(ModelInputs(prices[:, :0]), (), config)
