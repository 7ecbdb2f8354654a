"""Folds of a walk-forward backtest: train the network once, then forecast the years until the next training."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple, cast

import torch
from torch import Tensor

from torch_opkit.arguments import operation
from torchcommodity.models import (
    Har,
    HarConfig,
    HarGarch,
    HarGarchConfig,
    HarNetwork,
    ModelInputs,
    WindowNetwork,
    build_model,
    fit_price_scale,
    model_name,
    price_after,
    scale_change,
    scale_inputs,
    to_device,
)
from torchcommodity.training._calibration import calibrate
from torchcommodity.training._config import FitConfig
from torchcommodity.training._covariates import without_extra_terms
from torchcommodity.training._device import resolve_device
from torchcommodity.training._runtime import one_thread
from torchcommodity.training._train import calibrate_model, train
from torchcommodity.training._trainer import network_parameters
from torchcommodity.training._windows import check_no_look_ahead, predict_rows

HAR_GARCH = model_name(HarGarchConfig())  # equal to any untrained network, bit for bit
CPU = torch.device("cpu")
WITHOUT_COVARIATES = f"{HAR_GARCH}, no covariates"


class Prediction(NamedTuple):
    """Forecasts of the rows from `start` on."""

    quantiles: Tensor  # (T - start, H, N, Q) of the cumulative log-return, or change of asinh(P / S)
    variance: Tensor  # (T - start, H, N) of the same


Baseline = Callable[[ModelInputs, int, HarConfig], Prediction]  # inputs, start, settings


class Fold(NamedTuple):
    """Arguments of `run_fold`; picklable, so that a fold can run on any executor."""

    inputs: ModelInputs  # up to the last row to forecast
    years: dict[str, range]  # test rows of each year
    config: FitConfig
    seed: int
    baselines: Mapping[str, Baseline]
    # (N,) S of all forecasts of the result, NaN = log; each fit has its own
    scale: Tensor | None = None


class FoldResult(NamedTuple):
    """Forecasts of the test rows of a fold, and a record of its fits."""

    # by name: the model, `HAR_GARCH` if it has a network, `WITHOUT_COVARIATES` if it has covariates, the baselines
    predictions: dict[str, Prediction]
    fit_note: str  # first test year and the note of `TrainResult`
    mix: dict[str, Tensor]  # year: (H, K) coefficients of the variance terms


@operation("backtest")
@one_thread()
def run_fold(fold: Fold) -> FoldResult:
    """Train the network on the rows before the first test year, recalibrate before each year and forecast it."""
    device = resolve_device(fold.config.train.device)
    model = build_model(fold.config.model, fold.inputs.prices.shape[1], fold.seed)
    first_year, first_rows = next(iter(fold.years.items()))
    past = fold.inputs.before(first_rows.start)
    _set_price_scale(model.har, past, fold.scale)
    result = train(model, past, fold.config.train, fold.config.symmetry, fold.seed)
    check_no_look_ahead(model, past)
    parts: dict[str, list[Prediction]] = {}
    mix = {}
    for year, rows in fold.years.items():
        past = fold.inputs.before(rows.start)
        _set_price_scale(model.har, past, fold.scale)
        calibrate_model(model, past, fold.config.symmetry, fold.config.train)
        mix[year] = model.har.mix.clone()
        predictions = _predict(model, fold.inputs.before(rows.stop), rows.start, fold.baselines, device, fold.scale)
        if model.har.config.extra_terms:
            predictions[WITHOUT_COVARIATES] = _without_covariates(fold, rows)
        for name, prediction in predictions.items():
            parts.setdefault(name, []).append(prediction)
    joined = {name: Prediction(*map(torch.cat, zip(*years))) for name, years in parts.items()}
    return FoldResult(joined, f"{first_year}: {result.note}", mix)


def _set_price_scale(har: Har, past: ModelInputs, scale: Tensor | None) -> None:
    """The price scale of the training rows, for the symbols that have one in all of the backtest."""
    har.set_price_scale(None if scale is None else fit_price_scale(past.prices, ~scale.isnan()))


@torch.no_grad()
def _predict(
    model: HarNetwork,
    inputs: ModelInputs,
    start: int,
    baselines: Mapping[str, Baseline],
    device: torch.device = CPU,
    scale: Tensor | None = None,
) -> dict[str, Prediction]:
    """Forecasts of the rows from `start` on: the model, the same model untrained if it has a network, the baselines.

    The model computes on the device; the baselines, and the result, are on the CPU. Forecasts of symbols with a price
    scale are changes of asinh(P / S), with S of `scale`.
    """
    if device != CPU:
        model = to_device(copy.deepcopy(model), device)
    har_output = model.eval().har(*inputs.to(device).batch())
    corrections, predictions = dict[str, Tensor | None](), dict[str, Prediction]()
    if model.lookback is None:
        corrections[model_name(model.config)] = model.correction(har_output)
    if network_parameters(model) or model.lookback is not None:
        corrections[HAR_GARCH] = None
    for name, raw in corrections.items():
        variance = (2 * model.har.corrected_log_scale(har_output, raw)).exp()
        quantiles = model.har.quantiles(har_output, raw)
        prediction = Prediction(*(x[0, start:].cpu().to(inputs.prices.dtype) for x in (quantiles, variance)))
        predictions[name] = _in_scale(prediction, inputs.prices, model.har.scale, scale)
    if model.lookback is not None:
        quantiles = predict_rows(cast(WindowNetwork, model), inputs.to(device), start).cpu().to(inputs.prices.dtype)
        own = Prediction(quantiles, variance_of(quantiles, model.har.config.levels))
        predictions = {model_name(model.config): _in_scale(own, inputs.prices, model.har.scale, scale), **predictions}
    inputs = scale_inputs(inputs, scale)._replace(extra_variances=None, references=None, bars=None)
    config = replace(without_extra_terms(model.har.config), location=False, references=(), curve_of=(), bars=False)
    return predictions | {name: baseline(inputs, start, config) for name, baseline in baselines.items()}


def _in_scale(prediction: Prediction, prices: Tensor, own: Tensor | None, scale: Tensor | None) -> Prediction:
    """Forecasts in changes of asinh(P / S) with another S: those of the same prices.

    The variance changes with the square of the slope of one map over that of the other at the last price.
    """
    if own is None or scale is None:
        return prediction
    signed = ~scale.isnan()
    known = torch.where(prices.isfinite(), torch.arange(len(prices))[:, None], 0).cummax(0).values
    last = prices.gather(0, known)[len(prices) - len(prediction.variance) :, None, signed]  # (R, 1, M)
    before, after = own.cpu()[signed].to(last), scale[signed].to(last)
    quantiles, variance = prediction.quantiles.clone(), prediction.variance.clone()
    of_prices = price_after(last.unsqueeze(-1), quantiles[:, :, signed], before[:, None])
    quantiles[:, :, signed] = scale_change(last.unsqueeze(-1), of_prices, after[:, None])
    variance[:, :, signed] *= (before.square() + last.square()) / (after.square() + last.square())
    return Prediction(quantiles, variance)


def variance_of(quantiles: Tensor, levels: tuple[float, ...]) -> Tensor:  # (..., Q) -> (...)
    """The variance of a normal distribution with the outermost quantiles."""
    z = torch.special.ndtri(torch.tensor(levels, dtype=quantiles.dtype))
    if len(levels) == 1:
        return torch.full_like(quantiles[..., 0], torch.nan)
    scale: Tensor = (quantiles[..., -1] - quantiles[..., 0]) / (z[-1] - z[0])
    return scale.square()


@torch.no_grad()
def _without_covariates(fold: Fold, rows: range) -> Prediction:
    """Forecasts of the test rows by the same model without covariates and without a network."""
    inputs = fold.inputs._replace(extra_variances=None)
    model = HarGarch(inputs.prices.shape[1], HarGarchConfig(without_extra_terms(fold.config.model.har)))
    _set_price_scale(model.har, inputs.before(rows.start), fold.scale)
    calibrate(model.har, inputs.before(rows.start), fold.config.symmetry)
    return _predict(model, inputs.before(rows.stop), rows.start, {}, scale=fold.scale)[HAR_GARCH]
