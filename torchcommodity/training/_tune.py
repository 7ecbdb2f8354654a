"""Settings of a network chosen on a block of past time, with a budget; what comes after that block is not looked at."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from torchcommodity.data import Panel, check_not_synthetic, walk_forward
from torchcommodity.losses import pinball
from torchcommodity.models import build_model
from torchcommodity.training._calibration import targets
from torchcommodity.training._config import to_config, to_values
from torchcommodity.training._executors import LOCAL, Executor
from torchcommodity.training._fit_config import FitConfig, check_fit
from torchcommodity.training._folds import OURS, UNTRAINED, Fold, walk
from torchcommodity.training._inputs import model_inputs
from torchcommodity.training._train import Progress
from torchcommodity.training._trainer import network

if TYPE_CHECKING:
    import optuna

TOGETHER = 4  # trials that are drawn before the first of them is known: as many on every engine, so that all draw alike


class Trial(NamedTuple):
    """Settings that were tried, by key, and what they gave."""

    settings: dict[str, Any]
    change: float  # mean over the horizons of the pinball loss against the untrained baseline, percent; NaN: refused


class Tuned(NamedTuple):
    """The best settings and all trials in their order; the first is that of the settings given."""

    config: FitConfig
    trials: tuple[Trial, ...]
    first: str  # date of the first row of the block that chose
    last: str

    @property
    def best(self) -> Trial:
        return min(self.trials, key=lambda trial: (math.isnan(trial.change), trial.change))


def tune(
    panel: Panel,
    config: FitConfig,
    *,
    trials: int = 20,
    seconds: float = math.inf,
    years: int = 2,
    seed: int = 0,
    engine: Executor = LOCAL,
    progress: Progress | None = None,
) -> Tuned:
    """Choose learning rate, weight decay, batch, window and the model's own sizes by optuna's TPE.

    Every trial trains on the rows before the last `years` calendar years of the panel and forecasts those: cut the
    panel before the years that are to judge the result.

    Args:
        panel: raw prices.
        config: the model, and the settings that are tried first; those of its econometric part stay.
        trials: how many at most.
        seconds: no further trial is begun after so long; the result then depends on the clock.
        years: calendar years at the end of the panel on which settings are compared.
        seed: of the search and of every training. The same seed and trials give the same result on every engine.
        engine: where trials are computed, see `engine`.
        progress: called as progress(done, of, what) after every trial.

    Raises:
        ValueError: the model has no network, the panel is synthetic or has too few rows before those years, `trials`
            or `years` is below 1, or every trial was refused.
    """
    try:
        import optuna
    except ImportError as error:
        raise ImportError("tune: optuna is not installed: pip install 'torchcommodity[tune]'", name="optuna") from error
    check_not_synthetic("tune", panel)
    if min(trials, years) < 1:
        raise ValueError(f"tune: trials and years must be at least 1; got {trials} and {years}")
    fold = _fold(panel, config, years, seed)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    space = dict(_space(config))
    study.enqueue_trial({key: value for key, (value, _) in space.items()})
    found: list[Trial] = []
    until = time.monotonic() + seconds
    while len(found) < trials and (not found or time.monotonic() < until):
        asked = [study.ask() for _ in range(min(TOGETHER, trials - len(found)))]
        drawn = [{key: draw(trial) for key, (_, draw) in space.items()} for trial in asked]
        attempts = [fold._replace(config=_with(config, settings)) for settings in drawn]
        for trial, settings, change in zip(asked, drawn, engine.map(attempt, attempts)):
            found.append(Trial(settings, change))
            failed = math.isnan(change)
            study.tell(trial, None if failed else change, optuna.trial.TrialState.FAIL if failed else None)
            if progress is not None:
                best = min((trial.change for trial in found if not math.isnan(trial.change)), default=math.nan)
                progress(len(found), trials, f"best {best:+.3f} %")
            if time.monotonic() >= until:
                break
    start = next(iter(fold.years.values())).start
    tuned = Tuned(config, tuple(found), str(panel.dates[start]), str(panel.dates[-1]))
    if math.isnan(tuned.best.change):
        raise ValueError(f"tune: the settings of all {len(found)} trials were refused; got {found[0].settings} first")
    return tuned._replace(config=_with(config, tuned.best.settings))


def attempt(fold: Fold) -> float:
    """What the network changes on a fold's rows, in percent of its untrained baseline; NaN if it cannot be built."""
    try:
        build_model(fold.config.model, fold.quotes.prices.shape[1], fold.seed)
    except ValueError:
        return math.nan
    predictions, start = walk(fold).predictions, next(iter(fold.years.values())).start
    har = fold.config.model.har
    ahead, levels = targets(fold.quotes.prices, har.horizons)[start:], torch.tensor(har.levels, dtype=torch.double)

    def loss(name: str, h: int) -> Tensor:
        return pinball(predictions[name].quantiles[:, h], ahead[:, h], levels)

    ratios = torch.stack([loss(OURS, h) / loss(UNTRAINED, h) for h in range(len(har.horizons))])
    return 100 * (ratios.nanmean().item() - 1)


def _fold(panel: Panel, config: FitConfig, years: int, seed: int) -> Fold:
    if not network(build_model(config.model, len(panel.symbols))):
        raise ValueError(f"tune: expected a model with a network; got {type(config.model).__name__}")
    horizon = config.model.har.horizons[-1]
    quoted, last = model_inputs(panel, horizon), int(str(panel.dates[-1])[:4])
    blocks = walk_forward(panel.dates, first=last - years + 1, horizon=horizon)
    check_fit(quoted.before(blocks[0].test.start), panel.symbols, config.model.har)
    return Fold(quoted, {str(panel.dates[b.test.start])[:4]: b.test for b in blocks}, config, seed, {})


Draw = Callable[["optuna.Trial"], Any]


def _space(config: FitConfig) -> Iterator[tuple[str, tuple[Any, Draw]]]:
    """Key, start and how it is drawn: from half to double of a model's own sizes, and wider for the training."""
    wide = {"learning_rate": 10, "weight_decay": 10, "batch": 4, "window": 2}
    values = [(f"train.{name}", getattr(config.train, name), times) for name, times in wide.items()]
    values += [(f"model.{field.name}", getattr(config.model, field.name), 2) for field in fields(config.model)]  # type: ignore[arg-type]
    for key, value, times in values:
        if type(value) in (int, float) and value > 0:
            yield key, _around(value, key, times)


def _around(value: float, key: str, times: int) -> tuple[float, Draw]:
    if isinstance(value, int):
        low, high = max(1, value // times), value * times
        return value, lambda trial: trial.suggest_int(key, low, high, log=True)
    return value, lambda trial: trial.suggest_float(key, value / times, value * times, log=True)


def _with(config: FitConfig, settings: dict[str, Any]) -> FitConfig:
    values = to_values(config)
    for key, value in settings.items():
        table, name = key.split(".")
        values[table][name] = value
    return to_config(values)
