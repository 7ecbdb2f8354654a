"""A Gaussian random walk behind the interface of every foundation model: the volatility of the context, no drift."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

DECILES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]


def price_quantiles(context: Any, horizon: int, levels: Any) -> Tensor:  # (L,) -> (horizon, Q)
    prices = torch.as_tensor(context)
    assert prices.ndim == 1
    assert prices.dtype == torch.float32
    assert torch.isfinite(prices).all()
    deviation = prices.double().log().diff().std() * torch.arange(1, horizon + 1).sqrt()
    z = torch.special.ndtri(torch.tensor(levels, dtype=torch.double))
    return (prices[-1] * (deviation[:, None] * z).exp()).float()


def function(contexts: list[Tensor], horizon: int, levels: Any) -> Tensor:
    return torch.stack([price_quantiles(x, horizon, levels) for x in contexts])


class Chronos:
    """chronos.ChronosPipeline: empirical quantiles of samples, at any level."""

    def predict_quantiles(
        self, inputs: Any, prediction_length: int | None = None, quantile_levels: list[float] = DECILES, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        assert isinstance(prediction_length, int)
        assert isinstance(quantile_levels, list)
        quantiles = torch.stack([price_quantiles(x, prediction_length, quantile_levels) for x in inputs])
        return quantiles, quantiles.mean(-1)


class ChronosBolt:
    """chronos.ChronosBoltPipeline of version 1: its argument is called context, and levels are clamped to its own."""

    quantiles = DECILES

    def predict_quantiles(
        self, context: Any, prediction_length: int | None = None, quantile_levels: list[float] = DECILES, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        levels = np.clip(quantile_levels, 0.1, 0.9)
        return Chronos().predict_quantiles(context, prediction_length, levels.tolist())


class Chronos2:
    """chronos.Chronos2Pipeline: a list of (variates, horizon, levels)."""

    quantiles = [0.01, *(round(0.05 * k, 2) for k in range(1, 20)), 0.99]  # noqa: RUF012  # as the original has it

    def predict_quantiles(
        self, inputs: Any, prediction_length: int | None = None, quantile_levels: list[float] = DECILES, **kwargs: Any
    ) -> tuple[list[Tensor], list[Tensor]]:
        assert set(quantile_levels) <= set(self.quantiles)
        quantiles, mean = Chronos().predict_quantiles(inputs, prediction_length, quantile_levels)
        return list(quantiles[:, None]), list(mean[:, None])


class TimesFM25:
    """timesfm.TimesFM_2p5_200M_torch, compiled: the mean before the deciles; version 2.0 pads the list in place."""

    def forecast(self, horizon: int, inputs: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        assert all(isinstance(x, np.ndarray) for x in inputs)
        quantiles = function([torch.as_tensor(x) for x in inputs], horizon, DECILES).numpy()
        inputs += [np.zeros(3)]
        return quantiles[..., 4], np.concatenate([quantiles.mean(-1, keepdims=True), quantiles], -1)


class TimesFM3:
    """timesfm3.TimesFM3Forecaster: a generator of outputs."""

    config = SimpleNamespace(quantiles=DECILES)

    def predict_batch(
        self, contexts: list[np.ndarray], horizon: int, return_quantiles: bool = False, **kwargs: Any
    ) -> Iterator[SimpleNamespace]:
        for x in contexts:
            quantiles = price_quantiles(x, horizon, DECILES).numpy()
            yield SimpleNamespace(forecast=quantiles[:, 4], quantiles=quantiles if return_quantiles else None)


class TiRex:
    """tirex.ForecastModel of version 1.0: deciles, whatever `quantile_levels` says."""

    def forecast(
        self,
        context: Any,
        output_type: str = "torch",
        batch_size: int = 512,
        quantile_levels: Any = tuple(DECILES),
        yield_per_batch: bool = False,
        **predict_kwargs: Any,
    ) -> tuple[Tensor, Tensor]:
        samples = [torch.Tensor(x) for x in context]  # raises for float64
        quantiles = function(samples, predict_kwargs["prediction_length"], DECILES)
        return quantiles, quantiles[..., 4]


class TiRex2:
    """tirex2.ForecastModel: a list of (variates, levels, horizon), and levels in float32."""

    quantiles = torch.tensor(DECILES)

    def forecast(
        self,
        timeseries: Any,
        prediction_length: int,
        output_type: str = "torch",
        batch_size: int = 512,
        yield_per_batch: bool = False,
        **predict_kwargs: Any,
    ) -> list[Tensor]:
        assert all(x.target.shape[0] == 1 and x.past_covariates is x.future_covariates is None for x in timeseries)
        return [price_quantiles(x.target[0], prediction_length, DECILES).T[None] for x in timeseries]


MODELS = {
    "chronos": Chronos(),
    "chronos-bolt": ChronosBolt(),
    "chronos-2": Chronos2(),
    "timesfm-2.5": TimesFM25(),
    "timesfm-3": TimesFM3(),
    "tirex": TiRex(),
    "tirex-2": TiRex2(),
    "function": function,
}
