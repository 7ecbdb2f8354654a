"""Checkpoint: an interrupted training resumes to the same bits; damaged and foreign files are rejected."""

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from torchcommodity import forecast
from torchcommodity.data import Panel
from torchcommodity.forecast import Forecaster
from torchcommodity.training import FitConfig

Equal = Callable[[Forecaster, Forecaster], bool]


class InterruptedTrainingError(Exception):
    pass


def interrupt(panel: Panel, path: Path, config: FitConfig, epoch: int) -> None:
    """Leave the checkpoint of a training interrupted at the end of an epoch."""

    def progress(done: int, total: int, description: str) -> None:
        if done == epoch:
            raise InterruptedTrainingError

    with pytest.raises(InterruptedTrainingError):
        forecast.fit(panel, config, seed=3, checkpoint=path, checkpoint_seconds=0, progress=progress)


@pytest.mark.slow
@pytest.mark.process
def test_checkpoint_of_a_killed_process_resumes_to_the_same_bits(
    panel: Panel,
    config: FitConfig,
    forecaster: Forecaster,
    equal: Equal,
    run_script: Callable[..., Any],
    tmp_path: Path,
) -> None:
    kill_at = int.from_bytes(os.urandom(1), "big") % 8 + 1  # while it writes the checkpoint of this step
    killed = run_script(tmp_path, kill_at)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    checkpoint = tmp_path / "checkpoint.pt"
    assert checkpoint.exists() == (kill_at > 1)
    resumed = forecast.fit(panel, config, seed=3, checkpoint=checkpoint)
    assert equal(resumed, forecaster), f"killed at step {kill_at}"
    assert {path.name for path in tmp_path.iterdir()} == {"script.py"}


@pytest.mark.parametrize("precision", ["32-true", "16-mixed"])
def test_checkpoint_of_an_interrupted_epoch_resumes_to_the_same_bits(
    panel: Panel, config: FitConfig, equal: Equal, tmp_path: Path, precision: Any
) -> None:
    config = replace(config, train=replace(config.train, precision=precision))
    path = tmp_path / "checkpoint.pt"
    interrupt(panel, path, config, epoch=2)
    resumed = forecast.fit(panel, config, seed=3, checkpoint=path)
    assert equal(resumed, forecast.fit(panel, config, seed=3))


def test_checkpoint_of_another_training_is_rejected(panel: Panel, config: FitConfig, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    interrupt(panel, path, config, epoch=1)
    with pytest.raises(ValueError, match=r"checkpoint .*checkpoint.pt belongs to other prices, settings, seed"):
        forecast.fit(panel, config, seed=4, checkpoint=path)
    with pytest.raises(ValueError, match="belongs to other prices"):
        forecast.fit(panel["WTI"], config, seed=3, checkpoint=path)


@pytest.mark.parametrize("damage", ["truncated", "changed byte", "empty"])
def test_checkpoint_damage_is_detected(panel: Panel, config: FitConfig, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "checkpoint.pt"
    interrupt(panel, path, config, epoch=1)
    content = path.read_bytes()
    changed = content[:99] + bytes([content[99] ^ 1]) + content[100:]
    path.write_bytes({"truncated": content[:-9], "changed byte": changed, "empty": b""}[damage])
    with pytest.raises(ValueError, match=r"is damaged \(checksum mismatch\); delete it to start over"):
        forecast.fit(panel, config, seed=3, checkpoint=path)
