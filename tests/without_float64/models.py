"""Models, layers, losses, tools and training on a device without float64: `python models.py [--device mps] [name ...]`.

Forecasts are compared with those of the CPU in float64. Without names, everything. Prints what fails as JSON.
"""

import argparse
import copy
import json
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from agreement import difference, disagreements
from fits import FITS
from layers import NO_INTEGER_PERIODS, layer_cases, loss_cases
from tools import TOOLS
from torch import Tensor

from torch_opkit import Past
from torchcommodity import data
from torchcommodity.losses import net_returns, pinball, sharpe_loss
from torchcommodity.models import (
    MODELS,
    HarConfig,
    PortfolioLstm,
    PortfolioLstmConfig,
    ScenarioCritic,
    ScenarioGanConfig,
    ScenarioGenerator,
    build_model,
)
from torchcommodity.ops import log_returns
from torchcommodity.scenarios import gradient_penalty
from torchcommodity.training import ModelInputs, calibrate, model_inputs

HAR = HarConfig(horizons=(5, 21), levels=(0.1, 0.5, 0.9), halflives=(5, 21, 63), trends=(5, 21), warmup=42)
SETTINGS: dict[str, dict[str, Any]] = {
    "har-regime": {"window": 20, "min_periods": 10, "lag": 5},
    "har-mlp-lstm": {"window": 20, "min_periods": 10, "lag": 5, "season": 5},
}
CONTRACTS = {"WTI": "CL", "BRENT": "BRN", "HENRY_HUB": "NG"}
STEP = 1e-2  # of the largest gradient: a ReLU or a target at a kink
INTERVAL = 1e-4  # of the width of the interval between the outer quantiles

Check = Callable[[torch.device], Iterator[str]]


def prices() -> data.Panel:
    """Two oils and gas, with the rolls of their contracts."""
    return data.embedded(list(CONTRACTS)).between("2014-01-01", "2014-06-30").with_contracts(CONTRACTS)


def forecaster(name: str, inputs: ModelInputs, har: HarConfig = HAR) -> Any:
    """A calibrated model whose corrections are not zero."""
    model = build_model(MODELS[name].config(har=har, **SETTINGS.get(name, {})), inputs.prices.shape[1])
    calibrate(model.har, inputs, symmetry=0.5)
    if hasattr(model, "indicators"):
        model.indicators.halflife = NO_INTEGER_PERIODS
    if hasattr(model, "head"):
        generator = torch.Generator().manual_seed(0)
        model.head.weight.data.copy_(torch.randn(model.head.weight.shape, generator=generator))
    return model.eval()


def all_rows(model: Any, *inputs: Tensor | None) -> Tensor:  # (B, T, H, N, Q)
    har_output = model.har(*inputs)
    quantiles: Tensor = model.har.quantiles(har_output, model.correction(har_output))
    return quantiles


def move(x: Any, device: torch.device) -> Any:
    """A model or its inputs on the device, in float32."""
    if isinstance(x, torch.nn.Module):
        return copy.deepcopy(x).float().to(device)
    return tuple(None if y is None else (y.float() if y.is_floating_point() else y).to(device) for y in x)


def check_forecasts(model: Any, inputs: ModelInputs, device: torch.device) -> Iterator[str]:
    with torch.no_grad():
        exact = all_rows(model, *inputs.batch())
        quantiles = all_rows(move(model, device), *move(inputs.batch(), device))
    width = exact[..., -1:] - exact[..., :1]
    if quantiles.device.type != device.type or not torch.equal(quantiles.cpu().isfinite(), exact.isfinite()):
        yield "quantiles: on another device, or NaN on other rows"
    error = ((quantiles.cpu() - exact).abs() / width).nan_to_num(0.0).max()
    if error > INTERVAL:
        yield f"quantiles: {error:.1e} of the width of the interval; expected at most {INTERVAL}"


def check_step(model: Any, inputs: ModelInputs, device: torch.device) -> Iterator[str]:
    """Gradients of one step in training mode, and the parameters after it."""
    moved, target = move(model, device).train(), data.targets(inputs.prices, HAR.horizons)[None]
    exact = copy.deepcopy(model).double().train()
    _pinball(exact, inputs.batch(), target).backward()
    _pinball(moved, move(inputs.batch(), device), move([target], device)[0]).backward()
    torch.optim.AdamW(moved.parameters(), lr=1e-3).step()
    for (name, x), y in zip(moved.named_parameters(), exact.parameters(), strict=True):
        yield from (f"gradient of {name}: {words}" for words in difference(x.grad, y.grad, device, STEP))
        if not x.isfinite().all():
            yield f"{name}: not finite after a step"


def _pinball(model: Any, inputs: tuple[Any, ...], target: Tensor) -> Tensor:
    torch.manual_seed(0)  # of dropout, whose masks the CPU draws for both
    quantiles = all_rows(model, *inputs)
    target = target.where(quantiles[..., 0].isfinite(), torch.nan)
    return pinball(quantiles.nan_to_num(), target, torch.tensor(HAR.levels).to(quantiles))


def forecaster_check(name: str, device: torch.device) -> Iterator[str]:
    inputs = model_inputs(prices(), HAR.horizons[-1])
    model = forecaster(name, inputs)
    yield from check_forecasts(model, inputs, device)
    yield from check_step(model, inputs, device)


def curve_check(path: Path, device: torch.device) -> Iterator[str]:
    """Futures with a curve, from a file of inputs."""
    inputs = ModelInputs(**torch.load(path))
    yield from check_forecasts(forecaster("har-garch", inputs), inputs, device)


def covariates_check(device: torch.device) -> Iterator[str]:
    """An extra variance: that of the symbol itself, with gaps."""
    inputs = model_inputs(prices(), HAR.horizons[-1])
    extra = log_returns(inputs.prices).square()[:, None, :, None].expand(-1, len(HAR.horizons), -1, 1)
    inputs = inputs._replace(extra_variances=extra.contiguous())
    yield from check_forecasts(forecaster("har-garch", inputs, replace(HAR, extra_terms=("own",))), inputs, device)


def averages_check(device: torch.device) -> Iterator[str]:
    """Monthly averages, with the memory of their returns."""
    panel = data.embedded(["CRUDE_OIL_BRENT", "COPPER"], frequency="monthly").between("1990-01-01", "2015-12-31")
    inputs, config = model_inputs(panel, 12), replace(HarConfig.for_frequency("monthly"), averages=True)
    yield from check_forecasts(forecaster("har-garch", inputs, config), inputs, device)


def update_check(device: torch.device) -> Iterator[str]:
    """Two live updates equal one call, bit for bit."""
    inputs = model_inputs(prices(), HAR.horizons[-1])
    model, past, first = move(forecaster("har-garch", inputs), device), Past({}), 100
    inputs = ModelInputs(*move(inputs, device))
    with torch.no_grad():
        model.update(past, inputs.before(first).unsqueeze())
        updated, whole = model.update(Past(past.tensors), inputs.after(first).unsqueeze()), model(*inputs.batch())
    if not torch.equal(updated.cpu(), whole.cpu()):
        yield f"differs from one call by {(updated - whole).abs().cpu().max():.1e}"


class Sharpe(torch.nn.Module):
    """Weights of a portfolio model, and its loss after costs."""

    def __init__(self, long_short: bool) -> None:
        super().__init__()
        self.model = PortfolioLstm(PortfolioLstmConfig(long_short, warmup=60, trends=(5, 21, 63), hidden=4))
        torch.nn.init.normal_(self.model.head.weight)

    def forward(self, prices: Tensor, rolls: Tensor) -> tuple[Tensor, Tensor]:
        weights = self.model(prices, rolls)
        net = net_returns(weights, torch.expm1(log_returns(prices)), 0.001, rolls=rolls, roll_cost=0.002)
        return weights, sharpe_loss(net, pooled=True)


def portfolio_check(long_short: bool, device: torch.device) -> Iterator[str]:
    panel = prices()
    rolls = (panel.rolls(ahead=0) > 0)[None]
    yield from disagreements(Sharpe(long_short), (panel.values.plain()[None].float(), rolls), device)


def gan_check(device: torch.device) -> Iterator[str]:
    """Generator, critic, and the gradient of the gradient penalty, which is a second derivative."""
    config = ScenarioGanConfig(window=48, critic_lags=(1, 4, 16), critic_halflives=(3.0, 10.0))
    returns = log_returns(prices().values.plain())[-2 * 48 :].nan_to_num().float().unflatten(0, (2, 48))
    generator, critic = ScenarioGenerator(3, config), ScenarioCritic(returns.std((0, 1)), config)
    torch.nn.init.normal_(generator.head.weight, std=0.1)
    noise, share = torch.randn(2, 48, generator.noise_channels), torch.rand(2, 1, 1)
    yield from disagreements(Adversaries(generator, critic), (noise, returns, share), device)


class Adversaries(torch.nn.Module):
    """Both losses of a step of the scenario GAN."""

    def __init__(self, generator: ScenarioGenerator, critic: ScenarioCritic) -> None:
        super().__init__()
        self.generator, self.critic = generator, critic

    def forward(self, noise: Tensor, real: Tensor, share: Tensor) -> tuple[Tensor, ...]:
        fake = self.generator(noise)
        return fake, self.critic(fake), gradient_penalty(self.critic, real, fake, self.critic.scale, share)


def checks(curve: Path | None) -> dict[str, Check]:
    """All of them by name, in groups."""
    cases = {f"nn: {name}": case for name, case in layer_cases().items()}
    cases |= {f"losses: {name}": case for name, case in loss_cases().items()}
    return {
        **{f"models: {name}": partial(forecaster_check, name) for name in MODELS},
        **({} if curve is None else {"models: with a curve": partial(curve_check, curve)}),
        "models: with covariates": covariates_check,
        "models: of averages": averages_check,
        "models: live update": update_check,
        "models: portfolio, long only": partial(portfolio_check, False),
        "models: portfolio, long-short": partial(portfolio_check, True),
        "models: scenario GAN": gan_check,
        **{f"training: {name}": check for name, check in FITS.items()},
        **{f"tools: {name}": check for name, check in TOOLS.items()},
        **{name: partial(disagreements, *case) for name, case in cases.items()},
    }


def failures(check: Check, device: torch.device) -> list[str]:
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        try:
            return list(check(device))
        except Exception:
            return traceback.format_exc().splitlines()[-12:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name")
    parser.add_argument("--device", default="single")
    parser.add_argument("--curve", type=Path, help="inputs of a model with a curve, a file of torch.save")
    arguments = parser.parse_args()
    if arguments.device == "single":
        import single_device
    chosen = {
        name: check for name, check in checks(arguments.curve).items() if not arguments.names or name in arguments.names
    }
    failed = {name: failures(check, torch.device(arguments.device)) for name, check in chosen.items()}
    if arguments.device == "single":
        failed["operators without a kernel for MPS"] = single_device.operators_without_mps_kernel()
    sys.stdout.write(json.dumps(failed))


if __name__ == "__main__":
    main()
