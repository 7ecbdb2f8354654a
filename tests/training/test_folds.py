"""run_fold: the model, its untrained baseline and the given baselines on the test rows."""

import pickle

import torch

from torchcommodity.data import Panel
from torchcommodity.models import HarGarchConfig
from torchcommodity.training import HAR_GARCH, FitConfig, Fold, model_inputs, run_fold

YEARS = {"2013": range(755, 1007), "2014": range(1007, 1259)}


def test_run_fold_untrained_network_is_har_garch_bit_for_bit(panel: Panel, config: FitConfig) -> None:
    fold = Fold(model_inputs(panel, 126), YEARS, config, 0, {})
    result = run_fold(fold)
    assert list(result.predictions) == ["har-lstm", HAR_GARCH]
    assert list(result.mix) == ["2013", "2014"]
    assert result.fit_note.startswith("2013: ")
    plain = run_fold(fold._replace(config=FitConfig(HarGarchConfig()))).predictions
    assert list(plain) == [HAR_GARCH]
    for expected, actual in zip(plain[HAR_GARCH], result.predictions[HAR_GARCH]):
        assert torch.equal(expected, actual)
    assert result.predictions["har-lstm"].quantiles.shape == (504, 4, 2, 19)


def test_fold_is_picklable(panel: Panel, config: FitConfig) -> None:
    fold = Fold(model_inputs(panel, 126), YEARS, config, 0, {})
    assert pickle.loads(pickle.dumps(fold)).years == YEARS
