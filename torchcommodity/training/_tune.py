"""Hyperparameter search on the last years of a panel."""

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from torch_opkit.arguments import operation
from torchcommodity.data import Panel, check_not_synthetic, signed_symbols, targets, walk_forward
from torchcommodity.losses import pinball
from torchcommodity.models import HarGarchConfig, HarNetwork, build_model, model_name, positive_prices
from torchcommodity.training._config import FitConfig, check_config
from torchcommodity.training._covariates import check_no_extra_terms
from torchcommodity.training._executors import LOCAL, Executor
from torchcommodity.training._folds import HAR_GARCH, Fold, run_fold
from torchcommodity.training._history import check_history, price_scale, usable_symbols
from torchcommodity.training._inputs import model_inputs
from torchcommodity.training._train import Progress
from torchcommodity.training._trainer import network_parameters

if TYPE_CHECKING:
    import optuna

CONCURRENT_TRIALS = 4  # suggested together; the same number on every executor, so that results agree


class Trial(NamedTuple):
    """Settings of one trial, by key, and their loss on the validation years."""

    settings: dict[str, Any]
    change: float  # of the pinball loss against the untrained baseline, percent, mean over the horizons; NaN: invalid


@dataclass(frozen=True)
class TuneResult:
    """Result of `tune`; lower changes are better, a negative change beats the untrained baseline.

    Args:
        config: the best settings, or those of the baseline har-garch if no trial beats it.
        trials: all trials in order; the first has the initial settings.
        first: date of the first validation row.
        last: date of the last validation row.
        excluded: symbols with too few prices before the validation years.
    """

    config: FitConfig
    trials: tuple[Trial, ...]
    first: str
    last: str
    excluded: tuple[str, ...] = ()

    @property
    def best(self) -> Trial:
        """The trial with the lowest change."""
        return min(self.trials, key=lambda trial: (math.isnan(trial.change), trial.change))

    @property
    def improved(self) -> bool:
        """Whether a trial beats the untrained baseline."""
        return self.best.change < 0

    @property
    def summary(self) -> str:
        """Best change and selected settings in one line."""
        change = f"{self.best.change:+.3f} % pinball loss against the untrained baseline ({HAR_GARCH})"
        text = f"{change}, {self.first} to {self.last}; lower is better"
        if self.improved:
            return f"Best of {len(self.trials)} trials: {text}"
        return f"None of {len(self.trials)} trials improved on the baseline, which is kept: {text}"


@operation("tune")
def tune(
    panel: Panel,
    config: FitConfig | None = None,
    *,
    model: Any = None,
    trials: int = 20,
    seconds: float = math.inf,
    years: int = 2,
    signed: Iterable[str] = (),
    seed: int = 0,
    executor: Executor = LOCAL,
    progress: Progress | None = None,
) -> TuneResult:
    """Search learning rate, weight decay, batch size, window and the model's own settings with optuna's TPE sampler.

    Every trial trains on the rows before the last `years` calendar years of the panel and forecasts those years. Its
    score is the change of the pinball loss against the untrained baseline in percent: lower is better. The panel should
    end before the years reserved for testing. Symbols with too few prices before the validation years are
    excluded.

    Args:
        panel: raw prices.
        config: the model and the settings of the first trial; the settings of the econometric part stay fixed.
        model: in place of that of the config, as for `forecast.fit`. Of a network of the user's its look-back and its
            own numbers are searched, those of a `functools.partial` or of the table `model.settings`.
        trials: maximum number of trials.
        seconds: time budget; no trial starts after it. With a budget the result depends on the machine's speed.
        years: calendar years at the end of the panel on which trials are compared.
        signed: as for `forecast.fit`; of other symbols the prices before those years decide.
        seed: random seed of the sampler and of every training run. The same seed and number of trials give the same
            result on every executor.
        executor: runs the trials, see `make_executor`.
        progress: called as progress(done, total, description) after every trial.

    Returns:
        A TuneResult. If no trial beats the untrained baseline, its config is that of the baseline har-garch.

    Raises:
        ValueError: the model has no network, the panel is synthetic, no symbol has enough prices before those years,
            `signed` names a symbol that the panel lacks, `trials` or `years` is below 1, or every trial was invalid.
        ImportError: optuna is not installed.
    """
    try:
        import optuna
    except ImportError as error:
        raise ImportError("tune: optuna is not installed: pip install 'torchcommodity[tune]'", name="optuna") from error
    check_not_synthetic(panel)
    panel = panel.drop_empty_rows()
    config = check_config(config, panel, model=model)
    if min(trials, years) < 1:
        raise ValueError(f"tune: trials and years must be at least 1; got {trials} and {years}")
    fold, excluded = _make_fold(panel, config, years, tuple(signed), seed)
    config = fold.config
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    space = _search_space(config, build_model(config.model, fold.inputs.prices.shape[1]))
    study.enqueue_trial({key: search_range.value for key, search_range in space.items()})
    results: list[Trial] = []
    deadline = time.monotonic() + seconds
    while len(results) < trials and (not results or time.monotonic() < deadline):
        pending = [study.ask() for _ in range(min(CONCURRENT_TRIALS, trials - len(results)))]
        suggestions = [{key: space[key].suggest(trial, key) for key in space} for trial in pending]
        folds = [fold._replace(config=_with_settings(config, settings)) for settings in suggestions]
        for trial, settings, change in zip(pending, suggestions, executor.map(evaluate_fold, folds)):
            results.append(Trial(settings, change))
            failed = math.isnan(change)
            study.tell(trial, None if failed else change, optuna.trial.TrialState.FAIL if failed else None)
            if progress is not None:
                best = min((trial.change for trial in results if not math.isnan(trial.change)), default=math.nan)
                progress(len(results), trials, f"best {best:+.3f} %")
            if time.monotonic() >= deadline:
                break
    start = next(iter(fold.years.values())).start
    result = TuneResult(config, tuple(results), str(panel.dates[start]), str(panel.dates[-1]), excluded)
    if math.isnan(result.best.change):
        first = fold._replace(config=_with_settings(config, results[0].settings))
        tried = f"none of {len(results)} trials had valid settings; the first was {results[0].settings}"
        try:
            next(iter(executor.map(score_fold, [first])))
        except ValueError as error:
            raise ValueError(f"tune: {tried}: {str(error).removeprefix('tune: ')}") from None
        raise ValueError(f"tune: {tried}")
    if not result.improved:
        return replace(result, config=replace(config, model=HarGarchConfig(config.model.har)))
    return replace(result, config=_with_settings(config, result.best.settings))


def evaluate_fold(fold: Fold) -> float:
    """The score of a trial; NaN for settings that are invalid, or with which training diverges."""
    try:
        return score_fold(fold)
    except ValueError:
        return math.nan


def score_fold(fold: Fold) -> float:
    """Change of the pinball loss against the untrained baseline, in percent."""
    predictions, start = run_fold(fold).predictions, next(iter(fold.years.values())).start
    har = fold.config.model.har
    target = targets(positive_prices(fold.inputs.prices, fold.scale), har.horizons)[start:]
    levels = torch.tensor(har.levels, dtype=torch.double)

    def loss(name: str, h: int) -> Tensor:
        return pinball(predictions[name].quantiles[:, h], target[:, h], levels)

    model = model_name(fold.config.model)
    ratios = torch.stack([loss(model, h) / loss(HAR_GARCH, h) for h in range(len(har.horizons))])
    return 100 * (ratios.nanmean().item() - 1)


def _make_fold(
    panel: Panel, config: FitConfig, years: int, signed: tuple[str, ...], seed: int
) -> tuple[Fold, tuple[str, ...]]:
    """Fold with the last `years` as test rows, and the symbols with too few prices before them."""
    if not network_parameters(build_model(config.model, len(panel.symbols))):
        raise ValueError(f"tune: config.model must have a network; got {model_name(config.model)}")
    check_no_extra_terms(config.model.har, "tune without extra_terms, and fit with covariates=")
    har, last = config.model.har, int(str(panel.dates[-1])[:4])
    blocks = walk_forward(panel.dates, test_start=last - years + 1, horizon=har.horizons[-1])
    start = blocks[0].test.start
    past = panel.between(None, panel.dates[start - 1])
    signed = signed_symbols(past, signed)
    usable = usable_symbols(past, config, signed)
    check_history(past.select(usable or past.symbols), har, signed=signed)
    chosen = panel.select(usable)
    config = check_config(config, chosen)
    inputs = model_inputs(chosen, har.horizons[-1], references=har.references, bars=har.bars)
    test_rows = {str(panel.dates[block.test.start])[:4]: block.test for block in blocks}
    excluded = tuple(symbol for symbol in panel.symbols if symbol not in usable)
    scale = price_scale(inputs.prices[:start], usable, signed)
    return Fold(inputs, test_rows, config, seed, {}, scale), excluded


class SearchRange(NamedTuple):
    """Initial value of a setting, and the range from which trials draw it, uniform in its logarithm."""

    value: float
    low: float
    high: float

    def suggest(self, trial: "optuna.Trial", key: str) -> float:
        if isinstance(self.value, int):
            return trial.suggest_int(key, int(self.low), int(self.high), log=True)
        return trial.suggest_float(key, self.low, self.high, log=True)


def _search_space(config: FitConfig, model: HarNetwork) -> dict[str, SearchRange]:
    """Range of each setting by key: within a factor of 2 for the model, wider for training."""
    factors = {"learning_rate": 10, "weight_decay": 10, "batch_size": 4, "window": 2}
    if model.lookback is not None:  # the rows of its window are among its own settings
        del factors["window"]
    values = [(f"train.{name}", getattr(config.train, name), factor) for name, factor in factors.items()]
    values += [(f"model.{name}", value, 2) for name, value in config.model.numbers().items()]
    space = {}
    for key, value, factor in values:
        if type(value) is int and value > 0:
            space[key] = SearchRange(value, max(1, value // factor), value * factor)
        elif type(value) is float and value > 0:
            space[key] = SearchRange(value, value / factor, value * factor)
    return space


def _with_settings(config: FitConfig, settings: dict[str, Any]) -> FitConfig:
    tables: dict[str, dict[str, Any]] = {"model": {}, "train": {}}
    for key, value in settings.items():
        table, _, name = key.partition(".")
        tables[table][name] = value
    model, train = config.model.with_numbers(tables["model"]), replace(config.train, **tables["train"])
    return replace(config, model=model, train=train)
