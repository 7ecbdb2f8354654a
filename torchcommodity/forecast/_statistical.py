"""AutoARIMA, AutoETS and Theta of `statsforecast` on log prices: chosen and fitted on the past, then carried forward.

    pip install 'torchcommodity[statsforecast]'      in an environment with pandas < 3, which statsforecast asks for

Each symbol by itself, on its known prices in their order: one that is missing, zero or negative is skipped, and a
forecast starts from the last known one. No model is fitted again after `start`; its parameters take in every later row.
"""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchcommodity.models import HarConfig
from torchcommodity.training import Baseline, Prediction

PAST = 1260  # known prices that a model is chosen and fitted on, five years
LEAST = 100  # known prices before the first fit

# without a season: a year of days is a longer one than these models take. Additive errors: multiplicative ones of a
# log price would depend on the unit of the price.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "autoarima": ("AutoARIMA", {"season_length": 1}),
    "autoets": ("AutoETS", {"season_length": 1, "model": "AZN"}),
    "theta": ("Theta", {"season_length": 1}),
}


def statistical(name: str, every: int = 1) -> Baseline:
    """A baseline of `statsforecast`, for `backtest(baselines=...)`.

    Args:
        name: "autoarima", "autoets" or "theta".
        every: only each such row from `start` on is forecast, the others are NaN: a row costs milliseconds.

    Returns:
        a function of prices (T, N), start and settings, which gives quantiles of the cumulative log-return from the
        last known price: mean + deviation x normal quantile, with the mean and the deviation of the model's own
        prediction intervals. A symbol with fewer than 100 known prices before `start` has none.

    Raises:
        ValueError: an unknown name, or `every` below 1.
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
    if every < 1:
        raise ValueError(f"statistical: every must be at least 1; got {every}")
    return partial(carried, partial(_load, name), every)


def carried(make: Callable[[], Any], every: int, prices: Tensor, start: int, config: HarConfig) -> Prediction:
    """Forecasts of `make()`, a model with statsforecast's `fit(y)` and `forward(y, h, level=...)`, one per symbol."""
    columns = [_symbol(make, every, column, start, config) for column in prices.T.numpy()]
    mean, deviation = torch.from_numpy(np.stack(columns, -1)).to(prices)  # each (T - start, H, N)
    z = torch.special.ndtri(torch.tensor(config.levels).to(prices))
    return Prediction(mean.unsqueeze(-1) + deviation.unsqueeze(-1) * z, deviation.square())


def _symbol(
    make: Callable[[], Any],
    every: int,
    prices: np.ndarray,  # (T,)
    start: int,
    config: HarConfig,
) -> np.ndarray:  # (2, T - start, H): mean and deviation of the cumulative log-return
    known = np.isfinite(prices) & (prices > 0)
    path, count = np.log(prices[known]), known.cumsum()
    found = np.full((2, len(prices) - start, len(config.horizons)), np.nan)
    begun = int(known[:start].sum())
    if begun < LEAST:
        return found
    path, count = path[max(begun - PAST, 0) :], count - max(begun - PAST, 0)
    model = make().fit(path[: count[start - 1]])
    for row in range(0, len(prices) - start, every):
        y = path[: count[start + row]]
        found[:, row] = _ahead(model.forward(y, config.horizons[-1], level=list(LEVELS)), y[-1], config.horizons)
    return found


LEVELS = tuple(range(10, 100, 10))  # percent, of the intervals that the deviation is read from
Z = torch.special.ndtri(torch.tensor(LEVELS, dtype=torch.double) / 200 + 0.5).numpy()


def _ahead(forecast: dict[str, np.ndarray], last: float, horizons: Sequence[int]) -> np.ndarray:  # (2, H)
    """The models' errors are normal, so that one deviation is all intervals; Theta's are those of 200 drawn paths."""
    ahead = {key: np.asarray(path)[np.array(horizons) - 1] for key, path in forecast.items()}  # AutoARIMA's are Series
    widths = np.stack([ahead[f"hi-{level}"] - ahead[f"lo-{level}"] for level in LEVELS], -1)
    return np.stack([ahead["mean"] - last, (widths / (2 * Z)).mean(-1)])


def _load(name: str) -> Any:
    try:
        models = import_module("statsforecast.models")
    except ImportError as error:
        raise ImportError(
            f"{name}: needs statsforecast; pip install 'torchcommodity[statsforecast]' in an environment with "
            f"pandas < 3; got {error}"
        ) from error
    kind, settings = MODELS[name]
    return getattr(models, kind)(**settings)
