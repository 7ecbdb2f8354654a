"""Training on real prices: pieces that add up, a process that is killed, two processes, Ray; one result."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from torchcommodity import data, forecast
from torchcommodity.data import Panel
from torchcommodity.forecast import Forecaster
from torchcommodity.models import MODELS, HarGarchConfig, HarLstmConfig
from torchcommodity.training import Executor, FitConfig, TrainConfig, make_executor
from torchcommodity.training._batches import TrainingBatch, plan_epoch
from torchcommodity.training._tune import tune

TRAINING = TrainConfig(epochs=2, window=63, batch_size=4)  # 3 or 4 steps an epoch, the last of fewer sequences
SHORT = FitConfig(HarLstmConfig(), TRAINING)
YEARS = ("2010-01-01", "2014-12-31")
# what the children of these tests do: the same training, killed at a step or shared by the processes of torchrun
CHILD = """
import os, signal, sys
from pathlib import Path
from torchcommodity import data, forecast
from torchcommodity.training import FitConfig, TrainConfig
from torchcommodity.models import HarLstmConfig
out, kill_at = Path(sys.argv[1]), int(sys.argv[2])
replaced, written = os.replace, 0
def replace(*paths):
    global written
    written += 1
    if written == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    replaced(*paths)
os.replace = replace
panel = data.embedded().select(["WTI", "SP500"]).between("2010-01-01", "2014-12-31")
config = FitConfig(HarLstmConfig(), TrainConfig(epochs=2, window=63, batch_size=4))
kept = None if kill_at < 0 else out / "checkpoint.pt"
fitted = forecast.fit(panel, config, seed=3, checkpoint=kept, every=0)
if os.environ.get("RANK", "0") == "0":
    fitted.save(out / "forecaster")
"""


@pytest.fixture(scope="module")
def panel() -> Panel:
    return data.embedded().select(["WTI", "SP500"]).between(*YEARS)


@pytest.fixture(scope="module")
def fitted(panel: Panel) -> Forecaster:
    return forecast.fit(panel, SHORT, seed=3)


def states(a: Forecaster, b: Forecaster) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    yield from zip(a.model.state_dict().values(), b.model.state_dict().values(), strict=True)


def same(a: Forecaster, b: Forecaster) -> bool:
    return a.record == b.record and all(torch.equal(x, y) for x, y in states(a, b))


def child(out: Path, kill_at: int, *launcher: str) -> subprocess.CompletedProcess[str]:
    script = out / "child.py"
    script.write_text(CHILD)
    command = [sys.executable, *launcher, str(script), str(out), str(kill_at)]
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, "PYTHONPATH": path})


def test_the_weights_of_pieces_add_up_to_the_mean_of_means() -> None:
    torch.manual_seed(0)
    targets = torch.randn(1, 57, 3, 2)
    targets[:, :, 0, 1] = torch.nan
    targets[:, 20:, 1] = torch.nan
    loss = torch.randn_like(targets)
    lesson = TrainingBatch(None, targets)  # type: ignore[arg-type]  # the market takes no part in a plan
    free = torch.tensor([True, True, False])
    for step in plan_epoch(
        lesson, free, torch.Generator().manual_seed(1), window=5, batch_size=4, micro_batches=3, levels=1
    ):
        starts = [start for part in step.micro_batches for start in part]
        known, all_of_it = (torch.cat([x[0, s : s + 5] for s in starts]) for x in (targets, loss))
        means = torch.where(known.isfinite(), all_of_it, torch.nan).nanmean((0, 2))[free].nanmean()
        summed = (torch.where(known.isfinite(), all_of_it, 0.0).sum((0, 2)) * step.weight).sum()
        torch.testing.assert_close(summed, means)


@pytest.mark.parametrize("pieces", [2, 3, 5])
def test_accumulation_changes_memory_and_not_the_result(panel: Panel, fitted: Forecaster, pieces: int) -> None:
    other = forecast.fit(panel, replace(SHORT, train=replace(TRAINING, micro_batches=pieces)), seed=3)
    assert max((x - y).abs().max().item() for x, y in states(fitted, other)) < 1e-5


def test_workers_and_threads_change_nothing(panel: Panel, fitted: Forecaster) -> None:
    threads = torch.get_num_threads()
    assert same(
        forecast.fit(panel, replace(SHORT, train=replace(TRAINING, num_workers=1, num_threads=2)), seed=3), fitted
    )
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("precision", ["bf16-mixed", "16-mixed"])
def test_mixed_precision_learns_nearly_the_same(panel: Panel, fitted: Forecaster, precision: Any) -> None:
    other = forecast.fit(panel, replace(SHORT, train=replace(TRAINING, precision=precision)), seed=3)
    assert not same(other, fitted)
    assert max((x - y).abs().max().item() for x, y in states(fitted, other)) < 0.03
    for ours, theirs in zip(other.record.validation, fitted.record.validation, strict=True):
        assert ours == pytest.approx(theirs, abs=0.1)


@pytest.mark.parametrize("name", ["har-mlp-lstm", "har-orthogonal-lstm"])
def test_models_of_native_operators_learn_in_half_precision(panel: Panel, name: str) -> None:
    train = replace(TRAINING, epochs=1, precision="bf16-mixed")
    assert len(forecast.fit(panel, FitConfig(MODELS[name].config(), train)).record.validation) == 1


def test_float16_leaves_out_the_steps_that_overflow(panel: Panel) -> None:
    # the scale starts at 65536 and the loss is large: the first steps overflow, and the scaler comes down
    found = forecast.fit(
        panel, replace(SHORT, train=replace(TRAINING, epochs=1, precision="16-mixed", gradient_clip=1e-3)), seed=3
    )
    assert all(x.isfinite().all() for x in found.model.state_dict().values())


def test_a_killed_training_is_carried_on_to_the_same_bits(panel: Panel, fitted: Forecaster, tmp_path: Path) -> None:
    kill_at = int.from_bytes(os.urandom(1), "big") % 8 + 1  # while it writes the checkpoint of this step
    died = child(tmp_path, kill_at)
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert (tmp_path / "checkpoint.pt").exists() == (kill_at > 1)
    kept = tmp_path / "checkpoint.pt"
    again = forecast.fit(panel, SHORT, seed=3, checkpoint=kept)
    assert same(again, fitted), f"killed at step {kill_at}"
    assert {path.name for path in tmp_path.iterdir()} == {"child.py"}


class KilledError(Exception):
    pass


def interrupted(panel: Panel, path: Path, config: FitConfig, at: int) -> None:
    def progress(done: int, of: int, what: str) -> None:
        if done == at:
            raise KilledError

    with pytest.raises(KilledError):
        forecast.fit(panel, config, seed=3, checkpoint=path, every=0, progress=progress)


@pytest.mark.parametrize("config", [SHORT, replace(SHORT, train=replace(TRAINING, precision="16-mixed"))])
def test_an_interrupted_epoch_is_carried_on(panel: Panel, tmp_path: Path, config: FitConfig) -> None:
    path = tmp_path / "checkpoint.pt"
    interrupted(panel, path, config, at=2)
    assert same(forecast.fit(panel, config, seed=3, checkpoint=path), forecast.fit(panel, config, seed=3))


def test_a_checkpoint_that_is_damaged_or_of_another_training_is_refused(panel: Panel, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    interrupted(panel, path, SHORT, at=1)
    with pytest.raises(ValueError, match=r"checkpoint .*checkpoint.pt belongs to other prices, settings, seed"):
        forecast.fit(panel, SHORT, seed=4, checkpoint=path)
    with pytest.raises(ValueError, match="belongs to other prices"):
        forecast.fit(panel["WTI"], SHORT, seed=3, checkpoint=path)
    whole = path.read_bytes()
    for damaged in (whole[:-9], whole[:99] + bytes([whole[99] ^ 1]) + whole[100:], b""):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"is damaged \(checksum mismatch\); delete it"):
            forecast.fit(panel, SHORT, seed=3, checkpoint=path)


def test_two_processes_give_what_one_gives(panel: Panel, fitted: Forecaster, tmp_path: Path) -> None:
    done = child(tmp_path, -1, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    assert done.returncode == 0, done.stderr
    two = Forecaster.load(tmp_path / "forecaster")
    assert two.record.corrected == fitted.record.corrected
    forecasts = [forecast.predict(found, panel).log_returns for found in (two, fitted)]
    torch.testing.assert_close(*forecasts, atol=1e-5, rtol=0)
    assert max((x - y).abs().max().item() for x, y in states(fitted, two)) < 1e-5


def test_tensorboard_when_asked_and_no_litter(panel: Panel, fitted: Forecaster, tmp_path: Path) -> None:
    before = set(Path().iterdir())
    assert same(forecast.fit(panel, SHORT, seed=3, tensorboard=tmp_path / "curves"), fitted)
    assert any(path.name.startswith("events.out") for path in (tmp_path / "curves").rglob("*"))
    assert set(Path().iterdir()) == before


def test_what_cannot_be_trained_is_refused_in_words(panel: Panel) -> None:
    for name, value in {"device": "cuda", "epochs": -1, "patience": 0, "gradient_clip": 0.0, "batch_size": 0}.items():
        if name == "device" and torch.cuda.is_available():
            continue
        with pytest.raises(ValueError, match=f"{name} "):
            forecast.fit(panel, replace(SHORT, train=replace(TRAINING, **{name: value})))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def ray() -> Iterator[Executor]:
    pytest.importorskip("ray")
    with make_executor("ray") as found:
        yield found


def killed_once(marker: Path) -> int:
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def refused(value: int) -> int:
    raise ValueError(f"expected another value; got {value}")


def test_ray_gives_the_same_and_survives_a_killed_worker(panel: Panel, ray: Executor, tmp_path: Path) -> None:
    config = replace(SHORT, train=replace(TRAINING, epochs=1))
    here = forecast.backtest(panel, config, first_year=2013, refit_network=1, baselines={})
    there = forecast.backtest(panel, config, first_year=2013, refit_network=1, baselines={}, executor=ray)
    assert there.fits == here.fits
    assert all(torch.equal(q, there.quantiles[name]) for name, q in here.quantiles.items())
    assert next(ray.map(killed_once, [tmp_path / "marker"])) != os.getpid()
    with pytest.raises(ValueError, match=r"^expected another value; got 3$"):
        list(ray.map(refused, [3]))


def test_tuning_finds_settings_that_are_no_worse(panel: Panel) -> None:
    config = replace(SHORT, train=replace(TRAINING, epochs=1))
    found = tune(panel, config, trials=3, years=1)
    assert (found.first, found.last, len(found.trials)) == ("2014-01-02", "2014-12-31", 3)
    assert found.trials[0].settings["train.batch_size"] == 4
    assert found.best.change <= found.trials[0].change
    assert found.config.train.learning_rate == found.best.settings["train.learning_rate"]
    assert tune(panel, config, trials=3, years=1) == found
    assert len(tune(panel, config, trials=3, seconds=0, years=1).trials) == 1
    with pytest.raises(ValueError, match=r"config\.model must have a network; got har-garch"):
        tune(panel, FitConfig(HarGarchConfig()))
    for wrong in ({"trials": 0}, {"years": 0}):
        with pytest.raises(ValueError, match="tune: trials and years must be at least 1"):
            tune(panel, config, **wrong)
