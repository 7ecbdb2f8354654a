"""`--device`: names are checked before torch is imported, devices before slow work."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import Result

Run = Callable[..., Result]
COMMANDS = {
    "predict": ("{model}",),
    "batch": ("{model}", "--data", "embedded"),
    "profile": ("{model}",),
    "export": ("{model}",),
    "backtest": (),
    "fit": (),
    "forecast": (),
    "portfolio": (),
    "scenarios": (),
    "tune": (),
    "optimize": (),
    "risk": ("{model}",),
    "simulate": ("{model}",),
    "scoreboard": (),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_device_without_such_a_name_is_a_usage_error(command: str, run: Run, error: Callable[[Result], str]) -> None:
    arguments = [argument.format(model=__file__) for argument in COMMANDS[command]]
    result = run(command, *arguments, "--device", "GPU 1")
    assert result.exit_code == 2
    if command != "export":  # which first rejects a file that is no fitted model
        assert "expected auto or a device of torch, such as cpu, cuda, cuda:1 or mps; got 'GPU 1'" in error(result)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("command", COMMANDS)
def test_device_that_is_not_available_is_an_error_before_any_work(
    command: str, run: Run, error: Callable[[Result], str], fitted: Path, tmp_path: Path
) -> None:
    arguments = [argument.format(model=fitted) for argument in COMMANDS[command]]
    files = {"fit": "a.safetensors", "export": "a.pt2", "batch": "a.duckdb", "tune": "a.toml"}
    out = () if command == "profile" else ("--out", tmp_path / files.get(command, "a.csv"))
    result = run(command, *arguments, "--device", "cuda", *out)
    assert result.exit_code == 2
    assert error(result) == ("Error: --device: device must be available on this machine, such as cpu or auto; got cuda")
    assert not list(tmp_path.iterdir())


def test_predict_on_a_named_cpu_gives_the_same_forecast(run: Run, fitted: Path) -> None:
    cpu, default = run("predict", fitted, "--device", "cpu"), run("predict", fitted)
    assert cpu.exit_code == 0
    assert cpu.stdout == default.stdout


@pytest.mark.parametrize(
    ("command", "function"),
    [
        ("forecast", "forecast.cached_fit"),
        ("optimize", "forecast.cached_fit"),
        ("tune", "training.tune"),
        ("portfolio", "portfolio.backtest"),
        ("scenarios", "scenarios.fit_scenarios"),
        ("scoreboard", "scoreboard.run"),
    ],
)
def test_command_trains_on_the_device(
    command: str, function: str, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    received: list[Any] = []

    def stop(*arguments: Any, **settings: Any) -> None:
        received.append(settings["device"] if command == "scoreboard" else arguments[1])
        raise ValueError("stop")

    monkeypatch.setattr(f"torchcommodity.{function}", stop)
    prices = () if command == "scoreboard" else ("--symbols", "WTI,BRENT")
    run(command, *prices, "--device", "auto", "--out", tmp_path / "out")
    (settings,) = received
    device = settings if command == "scoreboard" else getattr(settings, "train", settings).device
    assert device == "auto"


@pytest.mark.parametrize("command", ["risk", "simulate"])
def test_command_moves_the_model_to_the_device(
    command: str, run: Run, monkeypatch: pytest.MonkeyPatch, fitted: Path
) -> None:
    devices = []

    def stop(forecaster: object, device: object) -> None:
        devices.append(device)
        raise ValueError("stop")

    monkeypatch.setattr("torchcommodity.forecast.Forecaster.to", stop)
    run(command, fitted, "--device", "auto")
    assert devices == ["auto"]


def test_backtest_puts_the_device_into_the_settings(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    devices = []

    def stop(panel: object, settings: object, **_: object) -> None:
        devices.append(settings.train.device)  # type: ignore[attr-defined]
        raise ValueError("stop")

    monkeypatch.setattr("torchcommodity.forecast.cached_backtest", stop)
    run("backtest", "--symbols", "WTI", "--device", "auto")
    assert devices == ["auto"]
