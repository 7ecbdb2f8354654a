"""What the evaluations need of a backtest, and its rows whose targets do not overlap."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from torch_opkit.arguments import current_operation, raise_invalid
from torchcommodity.data import check_not_synthetic

Dates = np.ndarray[Any, np.dtype[np.datetime64]]


class EvaluatedForecasts(Protocol):
    """Quantile forecasts of several models and the outcomes: a `forecast.Backtest`, or anything with these fields."""

    @property
    def model(self) -> str:
        """Name of the tested model, a key of `quantiles`."""

    @property
    def origins(self) -> Dates:
        """(T,) dates of the forecasts."""

    @property
    def symbols(self) -> tuple[str, ...]:
        """N symbols."""

    @property
    def horizons(self) -> tuple[int, ...]:
        """H horizons in rows."""

    @property
    def levels(self) -> tuple[float, ...]:
        """Q quantile levels."""

    @property
    def targets(self) -> Tensor:
        """(T, H, N) cumulative log-returns; NaN where a target has not ended."""

    @property
    def target_dates(self) -> Dates:
        """(T, H, N) dates on which the targets end."""

    @property
    def quantiles(self) -> Mapping[str, Tensor]:
        """(T, H, N, Q) quantiles of each model."""


@runtime_checkable
class PriceForecasts(Protocol):
    """What a backtest with symbols whose prices may be negative also has, such as a `forecast.Backtest`."""

    @property
    def signed(self) -> tuple[str, ...]:
        """The symbols."""

    def price_changes(self, model: str) -> tuple[Tensor, Tensor]:
        """Outcomes (T, H, N) and quantiles (T, H, N, Q) of the change of the price, in its unit."""


def model_of(backtest: EvaluatedForecasts, model: str | None = None) -> str:
    """Name of a model of the backtest, the tested one if None; ValueError for another name and for synthetic prices."""
    operation = current_operation()
    check_not_synthetic(backtest, backtest.targets, *backtest.symbols)
    name = backtest.model if model is None else model
    if name not in backtest.quantiles:
        raise_invalid(operation, f"model must be one of {', '.join(backtest.quantiles)}", model=name)
    return name


def independent_rows(origins: Dates, target_dates: Dates, valid: Tensor) -> list[int]:  # (T,) each
    """Valid rows whose periods, from origin to target, do not overlap, from the first one on."""
    rows: list[int] = []
    for row in np.flatnonzero(valid.numpy()).tolist():
        if not rows or origins[row] >= target_dates[rows[-1]]:
            rows.append(row)
    return rows


def has_outcome(backtest: EvaluatedForecasts, *models: str) -> Tensor:  # (T, H, N) bool
    """Where the target has ended and every model has a forecast."""
    forecasts = [torch.isfinite(backtest.quantiles[name]).all(-1) for name in models]
    return torch.isfinite(backtest.targets) & torch.stack(forecasts).all(0)
