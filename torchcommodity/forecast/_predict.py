"""From a fitted forecaster and prices to quantiles of future returns and prices."""

from typing import TYPE_CHECKING, Any

import torch

from torchcommodity.data import to_panel
from torchcommodity.forecast._forecast import Forecast
from torchcommodity.forecast._history import check_warmup
from torchcommodity.training import model_inputs, one_thread

if TYPE_CHECKING:
    from torchcommodity.forecast._forecaster import Forecaster


@one_thread()
@torch.no_grad()
def predict(forecaster: "Forecaster", prices: Any) -> Forecast:
    """Forecast from the last row of `prices`; the variances are updated with every row.

    Args:
        forecaster: from `fit` or `Forecaster.load`.
        prices: raw prices, anything that `data.to_panel` takes, with at least the forecaster's symbols, in
            any order. Symbols without a contract take that of the forecaster.

    Raises:
        TypeError: `prices` of another type.
        ValueError: a symbol of the forecaster is missing, has another contract, no positive price, or too few prices
            for the warm-up.
    """
    panel = forecaster.align_panel(to_panel(prices, operation="predict"))
    inputs = model_inputs(panel, forecaster.horizons[-1])
    try:
        check_warmup(inputs.prices, panel.symbols, forecaster.model.har.config.warmup)
    except ValueError as error:
        raise ValueError(f"predict: {error}") from None
    log_returns = forecaster.model.eval()(*inputs.batch())[0]
    return Forecast.from_log_returns(panel, forecaster.horizons, forecaster.levels, log_returns)
