"""tune: reproducible, never worse than the untrained baseline, symbols without history excluded."""

import math
from dataclasses import replace

import pytest
from torch import Tensor

from torchcommodity import data
from torchcommodity.data import Panel
from torchcommodity.models import HarGarchConfig, HarLstmConfig
from torchcommodity.training import FitConfig, Trial, TuneResult, tune
from torchcommodity.training import _tune as module


@pytest.fixture(scope="module")
def one_epoch(config: FitConfig) -> FitConfig:
    return replace(config, train=replace(config.train, epochs=1))


def test_tune_is_reproducible_and_starts_with_the_given_settings(panel: Panel, one_epoch: FitConfig) -> None:
    result = tune(panel, one_epoch, trials=3, years=1)
    assert (result.first, result.last, len(result.trials)) == ("2014-01-02", "2014-12-31", 3)
    assert result.trials[0].settings["train.batch_size"] == 4
    assert result.best.change == min(trial.change for trial in result.trials)
    assert tune(panel, one_epoch, trials=3, years=1) == result


def test_tune_returns_the_best_settings(panel: Panel, one_epoch: FitConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "evaluate_fold", lambda fold: -float(fold.config.model.hidden))
    result = tune(panel, one_epoch, trials=5, years=1)
    assert result.improved
    assert result.config.train.learning_rate == result.best.settings["train.learning_rate"]
    assert result.config.model.hidden == max(trial.settings["model.hidden"] for trial in result.trials)
    assert result.config.train.epochs == 1
    assert result.summary.startswith(f"Best of 5 trials: {result.best.change:+.3f} %")
    assert "lower is better" in result.summary


@pytest.mark.parametrize("change", [0.0, 0.7])
def test_tune_keeps_the_baseline_if_no_trial_beats_it(
    panel: Panel, one_epoch: FitConfig, monkeypatch: pytest.MonkeyPatch, change: float
) -> None:
    monkeypatch.setattr(module, "evaluate_fold", lambda fold: change)
    result = tune(panel, one_epoch, trials=2, years=1)
    assert not result.improved
    assert result.config == replace(one_epoch, model=HarGarchConfig(one_epoch.model.har))
    assert result.summary == (
        f"None of 2 trials improved on the baseline, which is kept: +{change:.3f} % pinball loss against the "
        "untrained baseline (har-garch), 2014-01-02 to 2014-12-31; lower is better"
    )


def test_tune_excludes_symbols_without_history(one_epoch: FitConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "evaluate_fold", lambda fold: fold.inputs.prices.shape[1])
    result = tune(data.embedded().between("1990-01-01", "2000-12-31"), one_epoch, trials=1)
    assert result.excluded == ("HENRY_HUB",)  # starts in 1997
    assert result.trials[0].change == 2
    with pytest.raises(ValueError, match="every symbol must have at least 505 positive prices"):
        tune(data.embedded().between("2014-01-01", "2015-12-31"), one_epoch, trials=1, years=1)


def test_tune_takes_signed_symbols(panel: Panel, one_epoch: FitConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    scales: list[Tensor | None] = []
    monkeypatch.setattr(module, "evaluate_fold", lambda fold: scales.append(fold.scale) or 0.0)
    for signed in ((), panel.symbols[:1]):
        tune(panel, one_epoch, trials=1, years=1, signed=signed)
    assert scales[0] is None
    assert scales[1] is not None
    assert scales[1].isnan().tolist() == [False] + [True] * (len(panel.symbols) - 1)
    with pytest.raises(ValueError, match="tune: signed must name symbols of the prices"):
        tune(panel, one_epoch, trials=1, years=1, signed=["CRACK"])


def test_tune_starts_no_trial_after_the_time_budget(panel: Panel, one_epoch: FitConfig) -> None:
    assert len(tune(panel, one_epoch, trials=3, seconds=0, years=1).trials) == 1


def test_tune_rejects_model_without_network_and_counts_below_one(panel: Panel, one_epoch: FitConfig) -> None:
    with pytest.raises(ValueError, match=r"config\.model must have a network; got har-garch"):
        tune(panel, FitConfig(HarGarchConfig()))
    for arguments in ({"trials": 0}, {"years": 0}):
        with pytest.raises(ValueError, match="tune: trials and years must be at least 1"):
            tune(panel, one_epoch, **arguments)


def test_trial_with_which_training_diverges_is_no_error(
    panel: Panel, one_epoch: FitConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, first = module.run_fold, one_epoch.train.learning_rate

    def run_fold(fold: module.Fold) -> object:
        if fold.config.train.learning_rate == first:
            raise ValueError("tune: the gradient must be finite; got nan in epoch 1")
        return run(fold)

    monkeypatch.setattr(module, "run_fold", run_fold)
    result = tune(panel, one_epoch, trials=4, years=1)
    assert math.isnan(result.trials[0].change)
    assert not math.isnan(result.best.change)
    with pytest.raises(ValueError, match=r"^tune: none of 1 trials had valid settings; .*\}: the gradient must be fin"):
        tune(panel, one_epoch, trials=1, years=1)


def test_tune_result_ranks_invalid_settings_last() -> None:
    trials = (Trial({}, float("nan")), Trial({}, 0.3), Trial({}, -0.1))
    result = TuneResult(FitConfig(HarLstmConfig()), trials, "2014-01-02", "2014-12-31")
    assert result.best is trials[2]
