"""From a fitted forecaster and prices to quantiles of future returns and prices."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from torchcommodity.data import Panel
from torchcommodity.forecast._forecaster import Forecaster
from torchcommodity.forecast._origins import check_warm, origins
from torchcommodity.training import model_inputs, one_thread


@dataclass(frozen=True)
class Forecast:
    """Quantiles from the last row of a panel on.

    Each symbol starts from its last positive price, of `origins`, which may be earlier than the panel's last row: a
    missing, zero or negative price has no log-return. Horizons count panel rows.
    """

    symbols: tuple[str, ...]
    units: tuple[str, ...]
    horizons: tuple[int, ...]
    levels: tuple[float, ...]
    origin: np.datetime64  # the panel's last row
    origins: np.ndarray  # (N,) datetime64[D], the date of each symbol's last positive price
    last: Tensor  # (N,) that price
    log_returns: Tensor  # (H, N, Q) quantiles of the cumulative log-return
    prices: Tensor  # (H, N, Q) the same in price units

    def frame(self) -> pd.DataFrame:
        """Long table: date (of the start), symbol, horizon (rows), level, log_return, price."""
        H, N, Q = self.log_returns.shape
        horizon, symbol, level = (i.ravel() for i in np.indices((H, N, Q)))
        table: pd.DataFrame = pd.DataFrame(
            {
                "date": self.origins[symbol].astype("datetime64[s]"),
                "symbol": np.array(self.symbols, dtype=object)[symbol],
                "horizon": np.array(self.horizons)[horizon],
                "level": np.array(self.levels)[level],
                "log_return": self.log_returns.numpy().ravel(),
                "price": self.prices.numpy().ravel(),
            }
        )
        return table


@one_thread()
@torch.no_grad()
def predict(forecaster: Forecaster, panel: Panel) -> Forecast:
    """Forecast from the last row of `panel`, all of whose rows feed the variances.

    Args:
        forecaster: of `fit` or `Forecaster.load`.
        panel: raw prices with at least the forecaster's symbols, in any order. Symbols without a contract take that of
            the forecaster.

    Raises:
        ValueError: a symbol is unknown to the panel, is another contract than the forecaster's, has no positive price,
            or too few returns for its warm-up.
    """
    panel = forecaster.reads(panel)
    inputs = model_inputs(panel, forecaster.horizons[-1])
    prices = inputs.prices
    try:
        check_warm(prices, panel.symbols, forecaster.model.har.config.warmup)
    except ValueError as error:
        raise ValueError(f"predict: {error}") from None
    row, last = origins(prices)
    returns = forecaster.model.eval()(*inputs.batch())[0]
    return Forecast(
        symbols=tuple(panel.symbols),
        units=tuple(panel.units),
        horizons=forecaster.horizons,
        levels=forecaster.levels,
        origin=panel.dates[-1],
        origins=np.asarray(panel.dates)[row.numpy()],
        last=last,
        log_returns=returns,
        prices=last[None, :, None] * returns.exp(),
    )
