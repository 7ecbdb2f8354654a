"""Joint price paths of a fitted forecaster, by filtered historical simulation."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from torchcommodity.data import Horizon, Panel, SyntheticTensor, horizon_rows, row_calendar, to_panel
from torchcommodity.forecast._history import check_warmup
from torchcommodity.forecast._margins import match_margins
from torchcommodity.forecast._predict import predict
from torchcommodity.forecast._resample import block_length, resampled_rows
from torchcommodity.forecast._residuals import Residuals, standardized_residuals
from torchcommodity.forecast._simulation import Simulation
from torchcommodity.models import Har
from torchcommodity.training import ModelInputs, VarianceSource, model_inputs, one_thread, without_extra_terms

if TYPE_CHECKING:
    from torchcommodity.forecast._forecaster import Forecaster

MIN_PATHS = 1000  # paths behind the margins; fewer requested paths are the first of these


@one_thread()
@torch.no_grad()
def simulate(
    forecaster: "Forecaster",
    prices: Any,
    paths: int = 1000,
    *,
    covariates: VarianceSource | None = None,
    horizon: Horizon | None = None,
    seed: int = 0,
) -> Simulation:
    """Joint price paths after the last row of `prices`; see `Forecaster.simulate`."""
    if not isinstance(paths, int) or paths < 1:
        raise ValueError(f"simulate: paths must be an integer >= 1; got {paths!r}")
    panel = forecaster.align_panel(to_panel(prices, operation="simulate"), operation="simulate")
    rows = _rows(forecaster, horizon, panel)
    har, inputs = forecaster.model.har, model_inputs(panel, forecaster.horizons[-1])
    try:
        check_warmup(inputs.prices, panel.symbols, har.config.warmup)
    except ValueError as error:
        raise ValueError(f"simulate: {error}") from None
    forecast = predict(forecaster, panel, covariates)
    returns, shift, gap_variance = _adjust_rolls(har, inputs)
    residuals = standardized_residuals(har, returns)
    _check_residuals(residuals, har.config.warmup)
    block = block_length(residuals.rows)
    chosen = resampled_rows(len(residuals.rows), max(paths, MIN_PATHS), block, torch.Generator().manual_seed(seed))
    # up to the next horizon of the forecast, at which the margins are known
    horizons = [h for i, h in enumerate(forecaster.horizons) if i == 0 or forecaster.horizons[i - 1] < rows]
    simulated = _filtered_paths(har, residuals, _steps(gap_variance[: horizons[-1]]), chosen)
    centered = forecast.log_returns[: len(horizons)] - shift[[h - 1 for h in horizons], :, None]
    mapped = match_margins(simulated, centered, horizons, forecaster.levels)[:, :rows, :paths]
    log_returns = (mapped + shift[:rows].T[..., None]).permute(2, 1, 0)
    values = SyntheticTensor(forecast.last * log_returns.exp())
    return Simulation(forecast, values, _steps(shift[:rows]), seed, block, len(residuals.rows))


def _rows(forecaster: "Forecaster", horizon: Horizon | None, panel: Panel) -> int:
    """The number of rows to simulate."""
    longest = forecaster.horizons[-1]
    if horizon is None:
        return longest
    try:
        (rows,) = horizon_rows(horizon, row_calendar(panel.dates))
    except (TypeError, ValueError) as error:
        raise type(error)(f"simulate: {error}") from None
    if rows > longest:
        rule = f"horizon must be at most {longest} rows, the longest horizon of the forecaster"
        raise ValueError(f"simulate: {rule}; got {horizon!r}")
    return rows


def _check_residuals(residuals: Residuals, minimum: int) -> None:
    if len(residuals.rows) < minimum:
        rule = f"at least {minimum} rows after the warm-up must have a return of every symbol"
        got = f"{len(residuals.rows)} of {residuals.warm_rows} rows"
        raise ValueError(f"simulate: {rule}; got {got}: select symbols whose prices overlap for longer")


def _adjust_rolls(har: Har, inputs: ModelInputs) -> tuple[Tensor, Tensor, Tensor]:  # (T, N), (A, N), (A, N)
    """Returns without those of roll days; expected change by rolls, and its variance, up to each row ahead."""
    every_row = tuple(range(1, har.config.horizons[-1] + 1))
    daily = Har(har.assets, replace(without_extra_terms(har.config), horizons=every_row))
    if har.config.averages:
        daily.theta.copy_(har.theta)
    adjusted = daily.adjust_rolls(*inputs.batch(), last_rows=1)
    return adjusted.returns[0], adjusted.shift[0, -1], adjusted.gap_variance[0, -1]


def _steps(cumulative: Tensor) -> Tensor:  # (A, N) -> (A, N)
    return cumulative.diff(dim=0, prepend=torch.zeros_like(cumulative[:1]))


def _filtered_paths(
    har: Har, residuals: Residuals, gap_variance: Tensor, chosen: Iterator[Tensor]
) -> Tensor:  # (A, N), each (P,) -> (N, A, P)
    """Cumulative log-returns: resampled residuals times the GARCH volatility, which every step of a path updates.

    An uncertain roll gap adds its variance to the step of its row, not to the volatility of later ones.
    """
    omega, alpha, beta = (x[:, None] for x in har.garch_parameters())
    variance, cap = residuals.variance[:, None], har.config.cap
    path = []
    for gap, rows in zip(gap_variance[..., None], chosen):
        shocks = residuals.rows[rows].T
        step = variance.sqrt() * shocks
        path.append((variance + gap).sqrt() * shocks)
        variance = omega + alpha * step.clamp(-cap, cap).square() + beta * variance
    return torch.stack(path, 1).cumsum_(1)
