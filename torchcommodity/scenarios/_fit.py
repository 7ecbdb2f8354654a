"""Fit a scenario generator to the returns of a panel: by moments, then against its critic."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from torch_opkit.arguments import operation
from torchcommodity.data import check_daily, check_not_synthetic, to_panel
from torchcommodity.models import ScenarioCritic, ScenarioGanConfig, ScenarioGenerator, check_fields
from torchcommodity.scenarios._adversarial import AdversarialConfig, train_adversarially
from torchcommodity.scenarios._model import ScenarioModel, ScenarioRecord
from torchcommodity.scenarios._moments import initialize_by_moments
from torchcommodity.scenarios._returns import complete_returns
from torchcommodity.training import Progress, check_prices, check_returns, one_thread


@dataclass(frozen=True)
class ScenarioFitConfig:
    """Settings of the generator, the critic and their training."""

    model: ScenarioGanConfig = field(default_factory=ScenarioGanConfig)
    train: AdversarialConfig = field(default_factory=AdversarialConfig)

    def __post_init__(self) -> None:
        check_fields(self)


@operation("fit_scenarios")
@one_thread()
def fit_scenarios(
    prices: Any,
    config: ScenarioFitConfig | None = None,
    *,
    seed: int = 0,
    progress: Progress | None = None,
    through: str | np.datetime64 | None = None,
) -> ScenarioModel:
    """Fit a generator of joint log-returns to all windows of a panel.

    Args:
        prices: real prices, anything that `data.to_panel` takes. Returns are roll-adjusted if the panel has contracts;
            rows without a return of every symbol are excluded, and counted in the record.
        config: settings; the defaults if None.
        seed: random seed for initialization, noise and shuffling; the same seed gives the same bits on the CPU.
        progress: called as progress(done, total, description) during training.
        through: last date used; all rows if None.

    Returns:
        A ScenarioModel, to sample paths from.

    Raises:
        TypeError: `prices` has another type.
        ValueError: the panel is synthetic, not daily, has a spread, or fewer complete rows than two windows.

    Example:
        >>> from torchcommodity import data
        >>> config = ScenarioFitConfig(train=AdversarialConfig(steps=0))  # by moments only
        >>> fit_scenarios(data.embedded(["BRENT", "HENRY_HUB"]), config, through="2016-12-31")
        ScenarioModel(BRENT, HENRY_HUB; fitted on 4,975 rows 1997-01-08 to 2016-12-30; 0 steps)
    """
    panel = to_panel(prices)
    check_prices(panel)
    check_returns(panel, "a scenario of returns")
    check_not_synthetic(panel)
    check_daily(panel.dates)
    config = config or ScenarioFitConfig()
    panel = panel if through is None else panel.between(None, through)
    returns, dates = complete_returns(panel)
    window = config.model.window
    if len(returns) < 2 * window:
        got = f"{len(returns)} of {len(panel)} rows"
        raise ValueError(f"fit_scenarios: at least {2 * window} rows must have a return of every symbol; got {got}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        generator = ScenarioGenerator(len(panel.symbols), config.model)
        critic = ScenarioCritic(returns.std(0).float(), config.model)
    initialize_by_moments(generator, returns)
    windows = returns.float().unfold(0, window, 1).mT  # (W, T, N)
    train_adversarially(generator, critic, windows, config.train, seed, progress)
    first, last = str(dates[0]), str(dates[-1])
    record = ScenarioRecord(seed, first, last, len(returns), len(panel) - 1 - len(returns), config.train.steps)
    return ScenarioModel(generator.eval(), tuple(panel.symbols), record)
