"""Predict quantiles of future returns and prices with a fitted forecaster."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from torchcommodity.data import compare_with_training, to_panel
from torchcommodity.forecast._covariates import covariate_findings, forecaster_inputs
from torchcommodity.forecast._forecast import Forecast
from torchcommodity.forecast._history import check_warmup
from torchcommodity.training import VarianceSource, one_thread

if TYPE_CHECKING:
    from torchcommodity.forecast._forecaster import Forecaster


@one_thread()
@torch.no_grad()
def predict(forecaster: "Forecaster", prices: Any, covariates: VarianceSource | None = None) -> Forecast:
    """Forecast from the last row of `prices`. The model is not refitted; its variances use every row.

    It computes on the device of the forecaster, see `Forecaster.to`; the forecast is on the CPU.

    Args:
        forecaster: from `fit` or `Forecaster.load`.
        prices: raw prices, anything that `data.to_panel` takes, with at least the forecaster's symbols, in
            any order. Symbols without a contract take that of the forecaster.
        covariates: those of the fit, with their values up to now, if it had any. A covariate whose last value is too
            old gives no information, which is a finding of the forecast.

    Raises:
        TypeError: an argument has another type.
        ValueError: a symbol of the forecaster is missing, has another contract, or too few positive prices for the
            warm-up; a date is still to come, see `data.latest_date`; the covariates are not those of the fit.

    Example:
        >>> from torchcommodity import data, forecast
        >>> forecaster = forecast.fit(data.embedded(["WTI"]).between("2012-01-01", "2017-12-31"))
        >>> predict(forecaster, data.embedded().between(None, "2019-01-03"))
        Forecast(WTI; from 2019-01-03; horizons 5, 21, 63, 126; 19 levels)
    """
    if not hasattr(forecaster, "align_panel"):
        raise TypeError(f"predict: forecaster must be a Forecaster; got {type(forecaster).__name__}")
    panel = forecaster.align_panel(to_panel(prices, operation="predict"))
    inputs = forecaster_inputs("predict", forecaster, panel, covariates)
    try:
        check_warmup(inputs.prices, panel.symbols, forecaster.model.har.config.warmup)
    except ValueError as error:
        raise ValueError(f"predict: {error}") from None
    findings = (*compare_with_training(panel, forecaster.record.prices), *covariate_findings(covariates, panel))
    panel = replace(panel, findings=(*panel.findings, *findings))
    log_returns = forecaster.model.eval()(*inputs.to(forecaster.device).batch())[0].cpu().to(inputs.prices.dtype)
    return Forecast.from_log_returns(panel, forecaster.horizons, forecaster.levels, log_returns)
