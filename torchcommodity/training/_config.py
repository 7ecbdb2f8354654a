"""Settings of training and fitting."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from torchcommodity.models import HarGarchConfig, ModelConfig
from torchcommodity.training._runtime import Device, MatmulPrecision, Precision


@dataclass(frozen=True)
class TrainConfig:
    """Settings of network training; the defaults are those of the published results."""

    epochs: int = 10  # 0 skips training: the model keeps its econometric baseline
    patience: int = 4  # epochs without improvement before early stopping
    window: int = 252  # rows of a training sequence
    batch_size: int = 2  # sequences per step, each with all symbols
    micro_batches: int = 1  # parts a batch is split into for gradient accumulation: less memory, the same gradient
    learning_rate: float = 3e-3  # AdamW
    weight_decay: float = 0.1
    gradient_clip: float = 1.0  # maximum gradient norm
    validation_fraction: float = 0.2  # last rows of the panel, used for early stopping
    max_horizon: int = 63  # longest horizon the network corrects: longer ones have too few validation windows
    device: Device = "cpu"
    precision: Precision = "32-true"
    matmul_precision: MatmulPrecision = "highest"  # see torch.set_float32_matmul_precision
    num_threads: int = 1  # a step takes microseconds: synchronizing threads would cost more than it saves
    num_workers: int = 0  # data loader processes

    def __post_init__(self) -> None:
        minimum = {
            "epochs": 0,
            "patience": 1,
            "window": 1,
            "batch_size": 1,
            "micro_batches": 1,
            "num_threads": 1,
            "num_workers": 0,
        }
        for name, smallest in minimum.items():
            if getattr(self, name) < smallest:
                raise ValueError(f"TrainConfig: {name} must be at least {smallest}; got {getattr(self, name)}")
        for name in ("learning_rate", "gradient_clip"):
            if not getattr(self, name) > 0:
                raise ValueError(f"TrainConfig: {name} must be positive; got {getattr(self, name)}")
        if not self.weight_decay >= 0:
            raise ValueError(f"TrainConfig: weight_decay must be at least 0; got {self.weight_decay}")
        if not 0 < self.validation_fraction < 1:
            raise ValueError(f"TrainConfig: validation_fraction must be in (0, 1); got {self.validation_fraction}")


@dataclass(frozen=True)
class FitConfig:
    """Model, training settings and calibration; the defaults are those of the published results."""

    model: ModelConfig = field(default_factory=HarGarchConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    symmetry: float = 0.5  # share of the past drift removed from the quantiles; requires levels symmetric about 1/2

    def __post_init__(self) -> None:
        levels = np.array(self.model.har.levels)
        if self.symmetry and not np.allclose(levels + levels[::-1], 1):
            raise ValueError(
                f"FitConfig: levels must be symmetric about 1/2 unless symmetry is 0; got {self.model.har.levels}"
            )
        if not 0 <= self.symmetry <= 1:
            raise ValueError(f"FitConfig: symmetry must be in [0, 1]; got {self.symmetry}")


def check_config(operation: str, config: Any) -> FitConfig:
    """Return the config, or the default one if it is None.

    Args:
        operation: public function that was called, for the error message.
        config: settings of a fit, or None.

    Raises:
        TypeError: another type; for the config of a model the message says how to wrap it.

    Example:
        >>> from torchcommodity.models import HarLstmConfig
        >>> check_config("fit", HarLstmConfig())
        Traceback (most recent call last):
        TypeError: fit: config must be a FitConfig; got HarLstmConfig; use FitConfig(model=HarLstmConfig(...))
    """
    if config is None:
        return FitConfig()
    if isinstance(config, FitConfig):
        return config
    name = type(config).__name__
    hint = f"; use FitConfig(model={name}(...))" if hasattr(config, "har") else ""
    raise TypeError(f"{operation}: config must be a FitConfig; got {name}{hint}")
