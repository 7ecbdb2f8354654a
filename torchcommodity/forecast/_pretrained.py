"""Pretrained models as rows of a backtest and as variance terms of a forecaster."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchcommodity.data import Panel
from torchcommodity.forecast._pipelines import Pipeline, at_levels, checked_quantiles, read_pipeline
from torchcommodity.models import Har, HarConfig
from torchcommodity.training import ModelInputs, Prediction, Progress, model_inputs, roll_adjusted_returns

INTERVAL = (0.1, 0.9)  # levels that every model has


class ForecastOrigin(NamedTuple):
    """A row and a symbol with a price on it."""

    row: int
    symbol: int
    length: int  # number of returns of the symbol up to this row


@dataclass(frozen=True)
class PretrainedModel:
    """A pretrained model that forecasts every `step`-th row of any panel: a baseline and a variance term.

    See `pretrained`. As a baseline it is a row of `backtest(baselines=)`; as the `covariates=` of `fit`, `predict` and
    `backtest` it is one more variance term of the forecaster, whose coefficient is estimated with those of the others.
    """

    pipeline: Pipeline = field(repr=False)
    name: str
    step: int
    context_length: int
    batch_size: int
    log_prices: bool
    levels: tuple[float, ...] | None
    progress: Progress | None = field(default=None, repr=False)

    @torch.no_grad()
    def __call__(self, inputs: ModelInputs, start: int, config: HarConfig) -> Prediction:
        """Forecast the rows from `start` on, as a `training.Baseline`."""
        T, N = inputs.prices.shape
        rows, levels = slice(start, T, self.step), tuple(sorted({*config.levels, *INTERVAL}))
        returns = self._quantiles(inputs, range(*rows.indices(T)), replace(config, levels=levels))
        variance = implied_variance(returns, levels)
        adjusted = Har(N, config).adjust_rolls(inputs.unsqueeze())
        shift, gap_variance = adjusted.shift[0, rows], adjusted.gap_variance[0, rows]
        scale = (1 + gap_variance / variance.clamp(min=config.floor)).sqrt()
        quantiles = shift.unsqueeze(-1) + scale.unsqueeze(-1) * returns
        index = [levels.index(level) for level in config.levels]
        return Prediction(*(self._every_row(x, T - start) for x in (quantiles[..., index], variance + gap_variance)))

    @property
    def terms(self) -> tuple[str, ...]:
        """Name of the variance term."""
        return (self.name,)

    @property
    def ratios(self) -> tuple[str, ...]:
        """None: the term is a variance."""
        return ()

    @torch.no_grad()
    def variances(self, panel: Panel, horizons: Sequence[int]) -> Tensor:  # (T, H, N, 1)
        """Variance per row that the model's quantiles imply, without roll gaps; the last one known at each row.

        NaN before a symbol's first forecast.
        """
        config = replace(HarConfig.for_frequency(panel.frequency), horizons=tuple(horizons), levels=INTERVAL)
        inputs, rows = model_inputs(panel, ahead=0), range(0, len(panel), self.step)
        variances = implied_variance(self._quantiles(inputs, rows, config), INTERVAL)
        per_row = variances / torch.tensor(horizons)[:, None]
        forecasts = self._every_row(per_row, len(panel))
        row = torch.arange(len(forecasts))[:, None, None].expand(forecasts.shape)
        last_row = torch.where(forecasts.isfinite(), row, 0).cummax(0).values  # with a forecast
        return forecasts.gather(0, last_row).unsqueeze(-1)

    def _every_row(self, forecasts: Tensor, rows: int) -> Tensor:  # (R, ...) -> (rows, ...)
        result = forecasts.new_full((rows, *forecasts.shape[1:]), torch.nan)
        result[:: self.step] = forecasts
        return result

    def _quantiles(self, inputs: ModelInputs, rows: range, config: HarConfig) -> Tensor:  # (R, H, N, Q)
        """Quantiles of the cumulative log-return without roll gaps."""
        returns, prices = roll_adjusted_returns(inputs), inputs.prices
        paths = [column[torch.isfinite(column)].cumsum(0) for column in returns.T]
        counts = torch.isfinite(returns).cumsum(0)
        valid = ((counts >= config.warmup) & torch.isfinite(prices) & (prices > 0))[rows.start :: rows.step]
        origins = [ForecastOrigin(rows[i], n, int(counts[rows[i], n])) for i, n in valid.nonzero().tolist()]
        quantiles = prices.new_full((len(rows), len(config.horizons), prices.shape[1], len(config.levels)), torch.nan)
        for first in range(0, len(origins), self.batch_size):
            batch = origins[first : first + self.batch_size]
            contexts = []
            for o in batch:
                path = paths[o.symbol][: o.length][-self.context_length :]
                log_ratios = path - path[-1]
                values = log_ratios if self.log_prices else prices[o.row, o.symbol] * log_ratios.exp()
                contexts.append(values.float().cpu())
            index, symbols = [rows.index(o.row) for o in batch], [o.symbol for o in batch]
            quantiles[index, :, symbols] = self._log_returns(contexts, config).to(quantiles)
            if self.progress is not None:
                self.progress(first + len(batch), len(origins), self.name)
        return quantiles

    def _log_returns(self, contexts: list[Tensor], config: HarConfig) -> Tensor:  # (B, H, Q)
        horizons = torch.tensor(config.horizons)
        quantiles = checked_quantiles(self.pipeline, contexts, config.horizons[-1], self.levels or config.levels)
        values = quantiles.values[:, horizons - 1]  # (B, H, K)
        if not self.log_prices:
            if not (values > 0).all():
                b, h, k = (values <= 0).nonzero()[0].tolist()
                got = f"{values[b, h, k]:.6g} at level {quantiles.levels[k]}, {config.horizons[h]} rows after a price"
                got += f" of {contexts[b][-1]:.6g}"
                raise ValueError(
                    f"{self.name}: quantiles of a price must be positive; got {got}; "
                    "pretrained(..., log_prices=True) forecasts the log price"
                )
            values = (values / torch.stack([context[-1] for context in contexts]).double()[:, None, None]).log()
        return at_levels(values, quantiles.levels, config.levels)


def pretrained(
    pipeline: Any,
    *,
    name: str = "pretrained",
    step: int = 1,
    context_length: int = 2048,
    batch_size: int = 256,
    log_prices: bool = False,
    levels: Sequence[float] | None = None,
    progress: Progress | None = None,
) -> PretrainedModel:
    """Forecast with a pretrained model of your own: one more row of a backtest.

    Each origin and symbol is one series: the symbol's past prices up to the origin, without missing rows. The prices of
    a front-month future are back-adjusted by ratios: a return over a roll is that of the contract held where the curve
    gives it, and left out where not; the last value is the price of the origin. Quantiles of the price h steps ahead
    become quantiles of the cumulative log-return over h of the symbol's rows. As in `models.Har`, the expected gaps of
    the coming rolls are added, and gaps that no curve gives add their variance: it scales the quantiles.

    Args:
        pipeline: one of
            a Chronos, Chronos-Bolt or Chronos-2 pipeline (`predict_quantiles`);
            a TimesFM 2.5 model compiled for the longest horizon (`forecast`), or TimesFM 3 (`predict_batch`);
            a TiRex or TiRex-2 model (`forecast`);
            a function `(contexts, horizon, levels)`, see `QuantilePipeline`.
        name: for messages, and of the variance term.
        step: forecast every `step`-th row only, the others are NaN; a model takes milliseconds to seconds a row.
        context_length: maximum number of values of a context.
        batch_size: number of contexts of a call.
        log_prices: contexts are log ratios to the price of the origin, and quantiles are those of the log-return: for
            models whose lower quantiles reach zero.
        levels: what a function is asked for, if it has levels of its own; by default the levels of the forecast.
        progress: called as progress(done, total, name) after each batch.

    Returns:
        A `training.Baseline`; NaN for a symbol with fewer than `warmup` returns. Quantiles that cross are sorted. At
        levels that the model does not have, log-returns are linear in the normal score of the level: between its two
        nearest levels, and beyond the outermost level on the line through the two outermost. The variance is that of a
        normal distribution with the same range between the levels 0.1 and 0.9.

    Raises:
        TypeError: `pipeline` is none of these.
        ValueError: a count is below 1. When it is called: the model returns another shape, a quantile that is NaN or
            infinite, or a price quantile that is not positive.

    References:
        Ansari et al. (2024). Chronos: learning the language of time series. arXiv:2403.07815.
        Das, Kong, Sen, Zhou (2024). A decoder-only foundation model for time-series forecasting. arXiv:2310.10688.
        Auer et al. (2025). TiRex: zero-shot forecasting across long and short horizons. NeurIPS. arXiv:2505.23719.

    Example:
        >>> import torch
        >>> def random_walk(contexts, horizon, levels):  # stands for a model; a constant volatility
        ...     z = torch.special.ndtri(torch.tensor(levels))
        ...     deviation = 0.02 * torch.arange(1, horizon + 1).sqrt()
        ...     return torch.stack([x[-1] * (deviation[:, None] * z).exp() for x in contexts])
        >>> from torchcommodity import data, forecast
        >>> wti = data.embedded(["WTI"]).between("2012-01-01", "2016-12-31")
        >>> models = forecast.baselines() | {"random walk": pretrained(random_walk, step=5)}
        >>> forecast.backtest(wti, first_year=2016, baselines=models)
        Backtest(har-garch, WTI; 252 origins 2016-01-04 to 2016-12-30; horizons 5, 21, 63, 126; 7 models)
    """
    for argument, value in {"step": step, "context_length": context_length, "batch_size": batch_size}.items():
        if value < 1:
            raise ValueError(f"pretrained: {argument} must be at least 1; got {value}")
    own = None if levels is None else tuple(levels)
    return PretrainedModel(read_pipeline(pipeline), name, step, context_length, batch_size, log_prices, own, progress)


def implied_variance(quantiles: Tensor, levels: Sequence[float]) -> Tensor:  # (..., Q) -> (...)
    """Variance of the normal distribution with the same range of `INTERVAL`, whose levels are among `levels`."""
    low, high = torch.special.ndtri(torch.tensor(INTERVAL, dtype=torch.double))
    ends = (quantiles[..., levels.index(level)] for level in INTERVAL)
    deviation: Tensor = -torch.sub(*ends) / (high - low)
    return deviation.square()
