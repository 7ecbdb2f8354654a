"""Joint price paths of a fitted forecaster, by filtered historical simulation."""

from typing import TYPE_CHECKING, Any

import torch

from torchcommodity.data import Horizon, Panel, SyntheticTensor, horizon_rows, row_calendar, to_panel
from torchcommodity.forecast._filtered import filter_history, filtered_paths, steps
from torchcommodity.forecast._history import check_warmup
from torchcommodity.forecast._margins import match_margins
from torchcommodity.forecast._predict import predict
from torchcommodity.forecast._resample import BLOCK, resampled_rows
from torchcommodity.forecast._simulation import Simulation
from torchcommodity.opkit.arguments import check_integer
from torchcommodity.training import VarianceSource, model_inputs, one_thread

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
    check_integer("simulate", 1, paths=paths)
    check_integer("simulate", 0, maximum=2**63 - 1, seed=seed)
    forecaster = forecaster.to("cpu")
    panel = forecaster.align_panel(to_panel(prices, operation="simulate"), operation="simulate")
    rows = _rows(forecaster, horizon, panel)
    har, inputs = forecaster.model.har, model_inputs(panel, forecaster.horizons[-1])
    try:
        check_warmup(inputs.prices, panel.symbols, har.config.warmup)
    except ValueError as error:
        raise ValueError(f"simulate: {error}") from None
    forecast = predict(forecaster, panel, covariates)
    history = filter_history(har, inputs)
    block = BLOCK[forecaster.frequency]
    row_numbers = resampled_rows(len(history.shocks), max(paths, MIN_PATHS), block, torch.Generator().manual_seed(seed))
    # up to the next horizon of the forecast, at which the margins are known
    horizons = [h for i, h in enumerate(forecaster.horizons) if i == 0 or forecaster.horizons[i - 1] < rows]
    simulated, shift = filtered_paths(har, history, row_numbers, horizons[-1]), history.rolls.shift
    centered = forecast.log_returns[: len(horizons)] - shift[[h - 1 for h in horizons], :, None]
    cumulative = match_margins(simulated, centered, horizons, forecaster.levels)[:, :rows, :paths]
    log_returns = (cumulative + shift[:rows].T[..., None]).permute(2, 1, 0)
    values = SyntheticTensor(forecast.last * log_returns.exp())
    return Simulation(forecast, values, steps(shift[:rows]), seed, block, len(history.shocks))


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
