"""Fit a scenario generator on the real returns of a panel: by moments, then against its critic."""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from torchcommodity.data import Panel, check_not_synthetic
from torchcommodity.models import ScenarioConfig, ScenarioCritic, ScenarioGenerator
from torchcommodity.scenarios._adversarial import AdversarialConfig, train_adversarially
from torchcommodity.scenarios._generator import ScenarioMaker, ScenarioRecord
from torchcommodity.scenarios._moments import start_by_moments
from torchcommodity.training import Progress, one_thread, roll_adjusted_returns


@dataclass(frozen=True)
class ScenarioFitConfig:
    """The generator, its critic, and how they are trained."""

    model: ScenarioConfig = field(default_factory=ScenarioConfig)
    train: AdversarialConfig = field(default_factory=AdversarialConfig)


@one_thread()
def fit_scenarios(
    panel: Panel,
    config: ScenarioFitConfig | None = None,
    *,
    seed: int = 0,
    progress: Progress | None = None,
    through: str | np.datetime64 | None = None,
) -> ScenarioMaker:
    """Fit a generator of joint log-returns on every window of real ones.

    Args:
        panel: real prices. Returns are roll-adjusted where the panel has contracts; a row on which the return of any
            symbol is not known is left out, and counted in the record.
        config: the settings; the defaults if None.
        seed: decides the networks' start, the noise and the order of training; the same seed gives the same bits on the
            CPU.
        progress: called as progress(done, of, what) while the two train.
        through: the last date used; all rows if None.

    Raises:
        ValueError: the panel is synthetic, or has fewer complete rows than two windows.
    """
    check_not_synthetic("fit_scenarios", panel)
    config = config or ScenarioFitConfig()
    panel = panel if through is None else panel.between(None, through)
    returns, dates = complete_returns(panel)
    window = config.model.window
    if len(returns) < 2 * window:
        got = f"{len(returns)} of {len(panel)} rows"
        raise ValueError(f"fit_scenarios: expected returns of all symbols on at least {2 * window} rows; got {got}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        generator = ScenarioGenerator(len(panel.symbols), config.model)
        critic = ScenarioCritic(returns.std(0).float(), config.model)
    start_by_moments(generator, returns)
    windows = returns.float().unfold(0, window, 1).mT  # (W, T, N)
    train_adversarially(generator, critic, windows, config.train, seed, progress)
    first, last = str(dates[0]), str(dates[-1])
    record = ScenarioRecord(seed, first, last, len(returns), len(panel) - 1 - len(returns), config.train.steps)
    return ScenarioMaker(generator.eval(), tuple(panel.symbols), record)


def complete_returns(panel: Panel) -> tuple[Tensor, np.ndarray]:  # (R, N), (R,)
    """Roll-adjusted log-returns of the rows on which every symbol has one, and their dates."""
    returns = roll_adjusted_returns(panel)
    complete = torch.isfinite(returns).all(1)
    return returns[complete], panel.dates[complete.numpy()]
