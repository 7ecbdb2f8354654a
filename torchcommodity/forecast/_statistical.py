"""AutoARIMA, AutoETS and Theta of `statsforecast` on log prices, selected and fitted on the past.

    pip install 'torchcommodity[statsforecast]'      in an environment with pandas < 3, which statsforecast requires

Models are fitted on each symbol's positive prices; missing, zero and negative prices are skipped, and a forecast starts
from the last positive price. No model is refitted after `start`; its state is updated with every later row.
"""

from collections.abc import Callable, Iterable, Sequence, Set
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import torch

from torchcommodity.models import HarConfig
from torchcommodity.training import Baseline, ModelInputs, Prediction

MAX_PAST = 1260  # prices on which a model is selected and fitted, five years of daily ones
MIN_PAST = 100  # prices before the first fit

# Additive errors: multiplicative errors of a log price would depend on the unit of the price.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "autoarima": ("AutoARIMA", {}),
    "autoets": ("AutoETS", {"model": "AZN"}),
    "theta": ("Theta", {}),
}
SEASONS = {"daily": 1, "weekly": 1, "monthly": 12}  # rows; the models do not support seasons of 252 days or 52 weeks
INTERVALS = tuple(range(10, 100, 10))  # percent; used to estimate the deviation
Z = torch.special.ndtri(torch.tensor(INTERVALS, dtype=torch.double) / 200 + 0.5).numpy()


def statistical(name: str, step: int = 1, *, rows: Iterable[int] | None = None) -> Baseline:
    """Create a baseline of `statsforecast`, for `backtest(baselines=...)`.

    Args:
        name: "autoarima", "autoets" or "theta".
        step: forecast every `step`-th row only, the others are NaN; a row takes milliseconds.
        rows: forecast these rows of the prices only, counted from their first one; all of them if None.

    Returns:
        A function of inputs, start and settings that returns quantiles of the cumulative log-return from the
        last positive price: mean + deviation x normal quantile, with mean and deviation from the model's prediction
        intervals. NaN for a symbol with fewer than 100 positive prices before `start`.

    Raises:
        ValueError: an unknown name, or `step` below 1.
        ImportError: `statsforecast` is not installed; raised when the baseline is called.

    References:
        Hyndman, Khandakar (2008). Automatic time series forecasting: the forecast package for R. J. Statistical
        Software 27(3). doi:10.18637/jss.v027.i03.
        Assimakopoulos, Nikolopoulos (2000). The theta model. Int. J. Forecasting 16(4).
        doi:10.1016/S0169-2070(00)00066-2.

    Example:
        >>> statistical("arima")
        Traceback (most recent call last):
        ...
        ValueError: statistical: name must be one of autoarima, autoets, theta; got 'arima'
    """
    if name not in MODELS:
        raise ValueError(f"statistical: name must be one of {', '.join(MODELS)}; got {name!r}")
    if step < 1:
        raise ValueError(f"statistical: step must be at least 1; got {step}")
    return partial(_forecast, name, step, rows=None if rows is None else frozenset(map(int, rows)))


def _forecast(
    name: str, step: int, inputs: ModelInputs, start: int, config: HarConfig, *, rows: Set[int] | None
) -> Prediction:
    return fit_and_update(partial(_create, name, SEASONS[config.frequency]), step, inputs, start, config, rows=rows)


def fit_and_update(
    create: Callable[[], Any],
    step: int,
    inputs: ModelInputs,
    start: int,
    config: HarConfig,
    *,
    rows: Set[int] | None = None,
) -> Prediction:
    """Forecasts of `create()`, a model with statsforecast's `fit(y)` and `forward(y, h, level=...)`, per symbol."""
    origins = [row for row in range(start, len(inputs.prices), step) if rows is None or row in rows]
    columns = [_forecast_symbol(create, origins, column, start, config) for column in inputs.prices.T.numpy()]
    mean, deviation = torch.from_numpy(np.stack(columns, -1)).to(inputs.prices)  # each (T - start, H, N)
    z = torch.special.ndtri(torch.tensor(config.levels).to(inputs.prices))
    return Prediction(mean.unsqueeze(-1) + deviation.unsqueeze(-1) * z, deviation.square())


def _forecast_symbol(
    create: Callable[[], Any],
    rows: Sequence[int],
    prices: np.ndarray,  # (T,)
    start: int,
    config: HarConfig,
) -> np.ndarray:  # (2, T - start, H): mean and deviation of the cumulative log-return
    positive = np.isfinite(prices) & (prices > 0)
    log_prices, count = np.log(prices[positive]), positive.cumsum()
    moments = np.full((2, len(prices) - start, len(config.horizons)), np.nan)
    past = int(positive[:start].sum())
    if past < MIN_PAST:
        return moments
    log_prices, count = log_prices[max(past - MAX_PAST, 0) :], count - max(past - MAX_PAST, 0)
    model = create().fit(log_prices[: count[start - 1]])
    for row in rows:
        y = log_prices[: count[row]]
        forecast = model.forward(y, config.horizons[-1], level=list(INTERVALS))
        # AutoARIMA's paths are Series
        paths = {key: np.asarray(path)[np.array(config.horizons) - 1] for key, path in forecast.items()}
        widths = np.stack([paths[f"hi-{level}"] - paths[f"lo-{level}"] for level in INTERVALS], -1)
        # the deviation is averaged over all intervals: equal for normal errors, while Theta simulates paths
        moments[:, row - start] = np.stack([paths["mean"] - y[-1], (widths / (2 * Z)).mean(-1)])
    return moments


def _create(name: str, season: int) -> Any:
    try:
        models = import_module("statsforecast.models")
    except ImportError as error:
        raise ImportError(
            f"{name}: needs statsforecast; pip install 'torchcommodity[statsforecast]' in an environment with "
            f"pandas < 3; got {error}"
        ) from error
    kind, settings = MODELS[name]
    return getattr(models, kind)(season_length=season, **settings)
