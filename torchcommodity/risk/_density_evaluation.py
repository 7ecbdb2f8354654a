"""PIT histograms, log scores and losses by date of a backtest's forecasts."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from torch_opkit.arguments import operation
from torchcommodity._extras import extra
from torchcommodity.data import Horizon, horizon_index, row_calendar
from torchcommodity.losses import pinball
from torchcommodity.risk._evaluated_forecasts import EvaluatedForecasts, has_outcome, independent_rows, model_of
from torchcommodity.risk._forecast_risk import log_score, probability_integral_transform

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class PitHistogram:
    """Share of outcomes between the quantiles of one symbol at one horizon, and a test that the PITs are uniform.

    Args:
        model: name of the model.
        symbol: symbol.
        horizon: rows.
        edges: (Q + 1 + 1,) levels with 0 and 1; a calibrated forecast has `shares` like their differences. A hump says
            that the forecast is too wide, a U that it is too narrow, a slope that it is too high or too low.
        shares: (Q + 1,) of the outcomes.
        forecasts: number of forecasts with an outcome.
        observations: those whose periods do not overlap; the sample of the test.
        statistic: of Kolmogorov and Smirnov, the largest distance of their distribution from the uniform one.
        p_value: a small one rejects the calibration.
    """

    model: str
    symbol: str
    horizon: int
    edges: tuple[float, ...]
    shares: tuple[float, ...]
    forecasts: int
    observations: int
    statistic: float
    p_value: float


@operation("pit_histograms")
def pit_histograms(backtest: EvaluatedForecasts, model: str | None = None) -> tuple[PitHistogram, ...]:
    """PIT histogram of every symbol and horizon of a backtest, with a Kolmogorov-Smirnov test of uniformity.

    The histogram has all forecasts, between the levels of the quantiles, so that no interpolation enters it. The test
    takes those whose periods do not overlap, and interpolates, see `probability_integral_transform`. Symbols are tested
    one by one because they move together.

    Args:
        backtest: quantiles and outcomes, such as a `forecast.Backtest`.
        model: name of the model; the tested one if None.

    Raises:
        ValueError: synthetic prices, or an unknown model.

    References:
        Diebold, Gunther, Tay (1998). Evaluating density forecasts. International Economic Review 39(4).
        doi:10.2307/2527342.

    Example:
        >>> from torchcommodity import data, forecast
        >>> wti = data.embedded(["WTI"]).between("2012-01-01", "2016-12-31")
        >>> week = pit_histograms(forecast.backtest(wti, first_year=2016))[0]
        >>> len(week.edges), len(week.shares), round(sum(week.shares), 6), week.p_value > 0.05
        (21, 20, 1.0, True)
    """
    with extra("forecast"):
        from scipy import stats

    name = model_of(backtest, model)
    valid = has_outcome(backtest, name)
    edges = np.array([0.0, *backtest.levels, 1.0])
    pits = probability_integral_transform(backtest.quantiles[name], backtest.levels, backtest.targets).numpy()
    records = []
    for n, symbol in enumerate(backtest.symbols):
        for i, horizon in enumerate(backtest.horizons):
            rows = valid[:, i, n]
            if rows.any():
                pit = pits[:, i, n]
                # an outcome at a quantile is at or below it, as in the calibration of a report
                counts = np.bincount(np.searchsorted(backtest.levels, pit[rows.numpy()]), minlength=len(edges) - 1)
                independent = independent_rows(backtest.origins, backtest.target_dates[:, i, n], rows)
                test = stats.kstest(pit[independent], "uniform")
                shares = tuple((counts / counts.sum()).tolist())
                numbers = int(counts.sum()), len(independent), float(test.statistic), float(test.pvalue)
                records.append(PitHistogram(name, symbol, horizon, tuple(edges.tolist()), shares, *numbers))
    return tuple(records)


@operation("log_scores")
def log_scores(backtest: EvaluatedForecasts) -> "pd.DataFrame":
    """Mean log score of every model at every horizon, on the rows that all of them forecast; higher is better.

    Args:
        backtest: quantiles and outcomes, such as a `forecast.Backtest`.

    Returns:
        A DataFrame of models by horizons. The density at an outcome beyond the outermost quantiles is an
        extrapolation, see `log_score`: with levels 0.05 ... 0.95 one in ten outcomes.

    Raises:
        ValueError: synthetic prices.

    Example:
        >>> from torchcommodity import data, forecast
        >>> wti = data.embedded(["WTI"]).between("2012-01-01", "2016-12-31")
        >>> table = log_scores(forecast.backtest(wti, first_year=2016))
        >>> bool(table.loc["har-garch", 5] > table.loc["unconditional", 5])
        True
    """
    import pandas as pd

    model_of(backtest)
    names = list(backtest.quantiles)
    targets = torch.where(has_outcome(backtest, *names), backtest.targets, torch.nan)
    means = {
        name: log_score(quantiles, backtest.levels, targets).nanmean((0, 2)).tolist()
        for name, quantiles in backtest.quantiles.items()
    }
    table: pd.DataFrame = pd.DataFrame(means, index=pd.Index(backtest.horizons, name="horizon")).T.rename_axis("model")
    return table


@operation("pinball_by_date")
def pinball_by_date(backtest: EvaluatedForecasts, horizon: Horizon) -> "pd.DataFrame":
    """Pinball loss of every model by date, mean over levels and symbols: the losses for `model_confidence_set`.

    Args:
        backtest: quantiles and outcomes, such as a `forecast.Backtest`.
        horizon: one of its horizons, in rows or as a text such as "1m".

    Returns:
        A DataFrame of dates by models, with the forecasts that every model has; NaN on dates without one.

    Raises:
        ValueError: synthetic prices, or a horizon that the backtest does not have.

    Example:
        >>> from torchcommodity import data, forecast
        >>> wti = data.embedded(["WTI"]).between("2012-01-01", "2016-12-31")
        >>> pinball_by_date(forecast.backtest(wti, first_year=2016), horizon="1m").shape
        (252, 6)
    """
    import pandas as pd

    model_of(backtest)
    i = horizon_index(horizon, backtest.horizons, row_calendar(backtest.origins))
    target = torch.where(has_outcome(backtest, *backtest.quantiles), backtest.targets, torch.nan)[:, i]  # (T, N)
    levels = torch.tensor(backtest.levels, dtype=torch.double)
    losses = {
        name: pinball(q[:, i], target, levels, reduction="none").mean(-1).nanmean(1).numpy()
        for name, q in backtest.quantiles.items()
    }
    table: pd.DataFrame = pd.DataFrame(losses, index=pd.DatetimeIndex(backtest.origins, name="origin"))
    return table
