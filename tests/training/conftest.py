"""Real prices, a short training, and comparisons of fitted forecasters."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from torchcommodity import data, forecast
from torchcommodity.data import Panel
from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarLstmConfig
from torchcommodity.training import FitConfig, TrainConfig

# the fit of the `forecaster` fixture, killed while writing a checkpoint, or run by several processes of torchrun
SCRIPT = """
import os, signal, sys
from pathlib import Path
from torchcommodity import data, forecast
from torchcommodity.models import HarLstmConfig
from torchcommodity.training import FitConfig, TrainConfig
folder, kill_at = Path(sys.argv[1]), int(sys.argv[2])
os_replace, count = os.replace, 0
def replace(*paths):
    global count
    count += 1
    if count == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    os_replace(*paths)
os.replace = replace
panel = data.embedded(["WTI", "BRENT"]).between("2010-01-01", "2014-12-31")
config = FitConfig(HarLstmConfig(), TrainConfig(epochs=2, window=63, batch_size=4))
checkpoint = None if kill_at < 0 else folder / "checkpoint.pt"
fitted = forecast.fit(panel, config, seed=3, checkpoint=checkpoint, checkpoint_seconds=0)
if os.environ.get("RANK", "0") == "0":
    fitted.save(folder / "forecaster")
"""
RunScript = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="package")
def panel() -> Panel:
    return data.embedded(["WTI", "BRENT"]).between("2010-01-01", "2014-12-31")


@pytest.fixture(scope="package")
def config() -> FitConfig:
    """An epoch has 3 or 4 steps, the last one of fewer sequences."""
    return FitConfig(HarLstmConfig(), TrainConfig(epochs=2, window=63, batch_size=4))


@pytest.fixture(scope="package")
def forecaster(panel: Panel, config: FitConfig) -> Forecaster:
    return forecast.fit(panel, config, seed=3)


@pytest.fixture(scope="package")
def max_difference() -> Callable[[Forecaster, Forecaster], float]:
    """Largest absolute difference of two models' parameters and buffers."""

    def max_difference(a: Forecaster, b: Forecaster) -> float:
        pairs = zip(a.model.state_dict().values(), b.model.state_dict().values(), strict=True)
        return max((x - y).abs().max().item() for x, y in pairs)

    return max_difference


@pytest.fixture(scope="package")
def equal(max_difference: Callable[[Forecaster, Forecaster], float]) -> Callable[[Forecaster, Forecaster], bool]:
    """Whether two fits, perhaps with other settings, gave the same record and, bit for bit, the same model."""

    def equal(a: Forecaster, b: Forecaster) -> bool:
        return replace(a.record, settings=b.record.settings) == b.record and max_difference(a, b) == 0

    return equal


@pytest.fixture(scope="package")
def run_script() -> RunScript:
    """Run SCRIPT in another process: run_script(folder, kill_at, *launcher)."""

    def run_script(folder: Path, kill_at: int, *launcher: str) -> "subprocess.CompletedProcess[str]":
        script = folder / "script.py"
        script.write_text(SCRIPT)
        command = [sys.executable, *launcher, str(script), str(folder), str(kill_at)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path)}
        return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)

    return run_script
