"""What is fitted and how: the model, its training, and the history that both need."""

from dataclasses import dataclass, field

import numpy as np
import torch

from torchcommodity.models import HarConfig, HarGarchConfig, ModelConfig
from torchcommodity.training._inputs import ModelInputs
from torchcommodity.training._train import TrainConfig


@dataclass(frozen=True)
class FitConfig:
    """The model and how it is fitted; the defaults are those of the published table."""

    model: ModelConfig = field(default_factory=HarGarchConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    symmetry: float = 0.5  # how much of the past drift is taken out of the quantiles; needs levels symmetric about 1/2

    def __post_init__(self) -> None:
        levels = np.array(self.model.har.levels)
        if self.symmetry and not np.allclose(levels + levels[::-1], 1):
            raise ValueError(f"FitConfig: symmetry needs levels symmetric about 1/2; got {self.model.har.levels}")
        if not 0 <= self.symmetry <= 1:
            raise ValueError(f"FitConfig: symmetry must be in [0, 1]; got {self.symmetry}")


def check_fit(past: ModelInputs, symbols: tuple[str, ...], config: HarConfig) -> None:
    """Refuse, by name, symbols from which nothing can be learned."""
    if not symbols:
        raise ValueError("fit: the panel must have at least one symbol; got none")
    known = (torch.isfinite(past.prices) & (past.prices > 0)).sum(0)
    empty = [s for s, n in zip(symbols, known.tolist()) if n == 0]
    if empty:
        raise ValueError(f"fit: every symbol must have positive prices; got none for {', '.join(empty)}")
    least = config.warmup + 2 * config.horizons[-1] + 1
    short = [f"{s} {n}" for s, n in zip(symbols, known.tolist()) if n < least]
    if short:
        why = f"a warm-up of {config.warmup} and twice the longest horizon of {config.horizons[-1]}"
        raise ValueError(
            f"fit: every symbol must have at least {least} positive prices ({why}); got {', '.join(short)}"
        )
