"""train: same bits with any number of workers and threads; several processes; logs; invalid settings."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from torchcommodity import forecast
from torchcommodity.data import Panel
from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarGarchConfig, HarTcnConfig, build_model
from torchcommodity.training import FitConfig, TrainConfig, model_inputs, train

Equal = Callable[[Forecaster, Forecaster], bool]


def test_train_result_does_not_depend_on_workers_and_threads(
    panel: Panel, config: FitConfig, forecaster: Forecaster, equal: Equal
) -> None:
    threads = torch.get_num_threads()
    parallel = replace(config, train=replace(config.train, num_workers=1, num_threads=2))
    assert equal(forecast.fit(panel, parallel, seed=3), forecaster)
    assert torch.get_num_threads() == threads


@pytest.mark.slow
@pytest.mark.process
def test_train_on_two_processes_equals_one(
    panel: Panel,
    forecaster: Forecaster,
    max_difference: Callable[[Forecaster, Forecaster], float],
    run_script: Callable[..., Any],
    tmp_path: Path,
) -> None:
    completed = run_script(tmp_path, -1, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    assert completed.returncode == 0, completed.stderr
    two = Forecaster.load(tmp_path / "forecaster")
    assert two.record.corrected == forecaster.record.corrected
    torch.testing.assert_close(two.predict(panel).log_returns, forecaster.predict(panel).log_returns, atol=1e-5, rtol=0)
    assert max_difference(two, forecaster) < 1e-5


def test_train_writes_tensorboard_logs_only_on_request(
    panel: Panel, config: FitConfig, forecaster: Forecaster, equal: Equal, tmp_path: Path
) -> None:
    before = set(Path().iterdir())
    assert equal(forecast.fit(panel, config, seed=3, tensorboard=tmp_path / "logs"), forecaster)
    assert any(path.name.startswith("events.out") for path in (tmp_path / "logs").rglob("*"))
    assert set(Path().iterdir()) == before


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_train_rejects_unavailable_device(panel: Panel, config: FitConfig) -> None:
    with pytest.raises(
        ValueError, match="fit: device must be available on this machine, such as cpu or auto; got cuda"
    ):
        forecast.fit(panel, replace(config, train=replace(config.train, device="cuda")))


def test_train_rejects_micro_batches_with_batch_normalization(panel: Panel) -> None:
    config = HarTcnConfig()
    with pytest.raises(ValueError, match=r"HarTcn has batch norm, .* micro_batches=1 and one process; got"):
        train(build_model(config, 2), model_inputs(panel, 126), TrainConfig(micro_batches=2), 0.5, seed=0)


@pytest.mark.parametrize(
    ("settings", "note"),
    [
        ({"epochs": 0}, "network not trained: epochs = 0"),
        ({"validation_fraction": 0.9}, "network not trained: too few rows for a validation block"),
        ({"max_horizon": 3}, "network not trained: every horizon exceeds max_horizon = 3"),
    ],
)
def test_train_without_training_says_why_and_keeps_the_baseline(
    panel: Panel, config: FitConfig, settings: dict[str, Any], note: str
) -> None:
    model = build_model(config.model, 2)
    result = train(model, model_inputs(panel, 126), replace(config.train, **settings), 0.5, seed=0)
    assert (result.epoch, result.corrected, result.note) == (0, (), note)
    assert not model.har.shrink.any()


def test_train_leaves_model_without_network_unchanged(panel: Panel) -> None:
    model = build_model(HarGarchConfig(), 2)
    before = {name: x.clone() for name, x in model.state_dict().items()}
    assert train(model, model_inputs(panel, 126), TrainConfig(), 0.5, seed=0).note == "no network to train"
    assert all(torch.equal(x, before[name]) for name, x in model.state_dict().items())
