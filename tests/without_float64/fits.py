"""Training and forecasts on a device without float64, against the CPU."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

import lightning_fabric
import torch
from lightning_fabric.accelerators import CPUAccelerator
from lightning_fabric.strategies import SingleDeviceStrategy

from torchcommodity import data, forecast, optimize, portfolio, scenarios
from torchcommodity.models import HarConfig, HarLstmConfig, PortfolioLstmConfig, ScenarioGanConfig
from torchcommodity.portfolio import PortfolioTrainConfig
from torchcommodity.training import FitConfig, TrainConfig, model_inputs

HAR = HarConfig(horizons=(5, 21), levels=(0.1, 0.5, 0.9), halflives=(5, 21, 63), trends=(5, 21), warmup=42)
LOSSES = 0.01  # percentage points of a change of the validation loss
DISTANCES = 0.1  # percentage points of the first distance between teacher and student
INTERVAL = 1e-4  # of the width of the interval between the outer quantiles
CONTRACTS = {"WTI": "CL", "BRENT": "BRN"}
STUDENT = HarLstmConfig(HAR, hidden=4)


class DeviceAccelerator(CPUAccelerator):
    """An accelerator of Fabric for any device: the test device is no kind that Fabric knows."""

    def setup_device(self, device: torch.device) -> None:
        pass


def fabric_on(device: torch.device) -> AbstractContextManager[Any]:
    """Fabric of the test device; Fabric knows "mps"."""
    if device.type == "mps":
        return nullcontext()
    fabric = lightning_fabric.Fabric(strategy=SingleDeviceStrategy(device, DeviceAccelerator()), devices=1)
    return mock.patch.object(lightning_fabric, "Fabric", return_value=fabric)


def panel(first: str = "2013-01-01") -> data.Panel:
    return data.embedded(list(CONTRACTS)).between(first, "2014-09-30").with_contracts(CONTRACTS)


def settings(device: str) -> TrainConfig:
    return TrainConfig(epochs=2, window=21, batch_size=8, device=device, learning_rate=0.01)


def fit_check(device: torch.device) -> Iterator[str]:
    """A fit on the device, and forecasts there by a forecaster of the CPU."""
    cpu = forecast.fit(panel(), FitConfig(STUDENT, settings("cpu")))
    with fabric_on(device):
        fitted = forecast.fit(panel(), FitConfig(STUDENT, settings(device.type)))
        moved = cpu.to(device).predict(panel()).log_returns
    yield from _different_losses(fitted.record.validation, cpu.record.validation)
    exact = cpu.predict(panel()).log_returns
    error = ((moved - exact).abs() / (exact[..., -1:] - exact[..., :1])).max()
    if error > INTERVAL or moved.dtype != exact.dtype or moved.device != exact.device:
        yield f"forecast: {error:.1e} of the width of the interval, {moved.dtype} on {moved.device}"


def distill_check(device: torch.device) -> Iterator[str]:
    """A small network learns from a larger one."""
    inputs = model_inputs(panel("2012-01-01"), HAR.horizons[-1])
    teacher = forecast.fit(panel(), FitConfig(HarLstmConfig(HAR), settings("cpu")))
    student = forecast.fit(panel(), FitConfig(STUDENT, replace(settings("cpu"), epochs=0)))
    student.model.har.load_state_dict(teacher.model.har.state_dict())
    cpu, other = (
        optimize.distill(teacher.to(x), student.to(x), inputs, epochs=2, learning_rate=0.01) for x in ("cpu", device)
    )
    percent, expected = ([100 * x / run.distances[0] for x in run.distances] for run in (other, cpu))
    yield from _different_losses(percent, expected, DISTANCES)


def portfolio_check(device: torch.device) -> Iterator[str]:
    """An epoch of a portfolio; its progress tells the Sharpe ratios in validation."""
    model = PortfolioLstmConfig(warmup=60, trends=(5, 21, 63), hidden=4)
    config = PortfolioTrainConfig(model, epochs=1, window=63, burn_in=21, batch=2)
    runs: list[list[str]] = []
    for name, context in (("cpu", nullcontext()), (device.type, fabric_on(device))):
        run = list[str]()
        with context:
            portfolio.train(panel(), replace(config, device=name), progress=partial(_append, run))
        runs.append(run)
    if runs[0] != runs[1]:
        yield f"expected {runs[0]}; got {runs[1]}"


def scenarios_check(device: torch.device) -> Iterator[str]:
    """A step of the scenario GAN; its progress tells the critic's distance."""
    model = ScenarioGanConfig(window=64, critic_lags=(1, 4, 16), critic_halflives=(3.0, 10.0))
    train = scenarios.AdversarialConfig(steps=1, critic_steps=1, batch=4)
    runs: list[list[str]] = []
    for name, context in (("cpu", nullcontext()), (device.type, fabric_on(device))):
        config, run = scenarios.ScenarioFitConfig(model, replace(train, device=name)), list[str]()
        with context:
            fitted = scenarios.fit_scenarios(panel(), config, progress=partial(_append, run))
        runs.append([*run, f"mean size of a return {fitted.sample(8).returns.plain().abs().mean():.3f}"])
    if runs[0] != runs[1]:
        yield f"expected {runs[0]}; got {runs[1]}"


def _append(texts: list[str], done: int, total: int, text: str) -> None:
    texts.append(text)


def _different_losses(actual: Any, expected: Any, tolerance: float = LOSSES) -> Iterator[str]:
    x, y = torch.tensor(actual), torch.tensor(expected)
    if not (x - y).abs().max() < tolerance or not y.any():
        yield f"changes of the validation loss: expected {expected}; got {actual}"


FITS = {
    "fit": fit_check,
    "distill": distill_check,
    "portfolio.train": portfolio_check,
    "scenarios.fit_scenarios": scenarios_check,
}
