"""A fold of a walk-forward: one training of the network and the years until the next. No fold needs another."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchcommodity.models import HarConfig, build_model
from torchcommodity.training._calibration import calibrate
from torchcommodity.training._fit_config import FitConfig
from torchcommodity.training._inputs import ModelInputs
from torchcommodity.training._threads import one_thread
from torchcommodity.training._train import train
from torchcommodity.training._trainer import network

OURS, UNTRAINED = "ours", "untrained"


class Prediction(NamedTuple):
    """Forecasts of the rows from `start` on."""

    quantiles: Tensor  # (T - start, H, N, Q) of the cumulative log-return
    variance: Tensor  # (T - start, H, N) of the same


Baseline = Callable[[Tensor, int, HarConfig], Prediction]  # prices (T, N), start, settings


class Fold(NamedTuple):
    """Everything that the forecasts of some years depend on."""

    quotes: ModelInputs  # up to the last row that is forecast
    years: dict[str, range]  # the test rows of each
    config: FitConfig
    seed: int
    baselines: Mapping[str, Baseline]


class FoldResult(NamedTuple):
    """The forecasts of a fold's rows, and what was fitted."""

    predictions: dict[str, Prediction]
    fit: str  # what became of the network, in words
    mix: dict[str, Tensor]  # year: (H, K) coefficients of the variance terms


@one_thread()
def walk(fold: Fold) -> FoldResult:
    """Train the network on the rows before the first year, fit all else on the rows before each, and forecast."""
    model = build_model(fold.config.model, fold.quotes.prices.shape[1], fold.seed)
    first = next(iter(fold.years.values())).start
    fitted = train(model, fold.quotes.before(first), fold.config.train, fold.config.symmetry, fold.seed).note
    pieces: dict[str, list[Prediction]] = {}
    mix = {}
    for year, test in fold.years.items():
        calibrate(model.har, fold.quotes.before(test.start), fold.config.symmetry)
        mix[year] = model.har.mix.clone()
        for name, prediction in _forecast(model, fold.quotes.before(test.stop), test.start, fold.baselines).items():
            pieces.setdefault(name, []).append(prediction)
    return FoldResult(
        {name: _joined(found) for name, found in pieces.items()}, f"{next(iter(fold.years))}: {fitted}", mix
    )


@torch.no_grad()
def _forecast(model: Any, quoted: ModelInputs, start: int, baselines: Mapping[str, Baseline]) -> dict[str, Prediction]:
    """Every model's forecasts of the rows from `start` on; ours with the network and without it."""
    model.eval()
    market = model.har(*quoted.batch())
    found = {}
    bends = {OURS: model.correction(market)} | ({UNTRAINED: None} if network(model) else {})
    for name, raw in bends.items():
        variance = (2 * model.har.corrected_log_scale(market, raw)).exp()
        found[name] = Prediction(model.har.quantiles(market, raw)[0, start:], variance[0, start:])
    config = model.har.config
    return found | {name: baseline(quoted.prices, start, config) for name, baseline in baselines.items()}


def _joined(found: list[Prediction]) -> Prediction:
    return Prediction(torch.cat([p.quantiles for p in found]), torch.cat([p.variance for p in found]))
