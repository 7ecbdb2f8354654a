"""Portfolio LSTM: raw prices to the weights of a portfolio at every row.

Legend: B batch, T time, N assets, F features.

    returns -> EWMA covariance, standardized trends               (B, T, N, N), (B, T, N, K)
    score = trend + bound tanh(LSTM(features))                    untrained: trend only
    long-short:  w = tanh(score) / sigma                          untrained: smoothed time-series momentum
    long only:   w = softmax(score) / sigma                       untrained: inverse volatility, tilted by the trend
    w scaled to a target volatility; an asset without a price on a row keeps its weight
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torchcommodity.models._config_fields import Bounds, IncreasingInts, PositiveFloat, PositiveInt, check_fields
from torchcommodity.nn import LSTM, VolatilityTarget
from torchcommodity.ops import ewm_covariance, linear_recurrence, log_returns


@dataclass(frozen=True)
class PortfolioLstmConfig:
    """Settings of `PortfolioLstm`; the defaults are those of the published results."""

    long_short: bool = False
    volatility: PositiveFloat = 0.10  # annualized ex-ante target
    leverage: PositiveFloat = 3.0  # upper bound of the sum of absolute weights
    rows_per_year: PositiveInt = 252
    halflife: PositiveFloat = 42.0  # rows, of the covariance
    trends: IncreasingInts = (5, 21, 63, 126, 252)  # rows; the last is the trend of the untrained portfolio
    cap: PositiveFloat = 0.25  # log-returns are clipped to +-cap in covariance and features
    floor: PositiveFloat = 1e-6  # minimum variance per row (0.1 % a day): constant prices do not attract all weight
    warmup: Annotated[int, Bounds(ge=2)] = 252  # returns that an asset needs before it is held
    hidden: PositiveInt = 8
    bound: PositiveFloat = 1.0  # the network changes a score by less than this

    def __post_init__(self) -> None:
        check_fields(self)


class PortfolioInputs(NamedTuple):
    """Inputs of the network at every row, computed without learned parameters."""

    features: Tensor  # (B, T, N, F) dimensionless, clipped to +-5; 0 where unknown
    covariance: Tensor  # (B, T, N, N) per row
    investable: Tensor  # (B, T, N) bool: at least `warmup` returns
    has_price: Tensor  # (B, T, N) bool: has a price on this row and can be traded


class PortfolioLstm(nn.Module):
    """Raw prices (B, T, N) to weights (B, T, N), held from the close of each row to the close of the next.

    Args:
        config: settings; one network is shared by all assets, so N may vary.

    A weight is a fraction of wealth, negative where short; the rest is cash. An asset with fewer than `config.warmup`
    returns has weight 0; one without a price on a row cannot be traded and keeps its weight. A price that is NaN, zero
    or negative is missing. Trends and covariances exclude rows where `rolls` is true: their return contains the gap
    between two contracts, which no position earns. Row t depends on rows <= t and earns the return of row t + 1, see
    `losses.net_returns`.

    References:
        Lim, Zohren, Roberts (2019). Enhancing time-series momentum strategies using deep neural networks. J. Financial
        Data Science 1(4). doi:10.3905/jfds.2019.1.015. Zhang, Zohren, Roberts (2020). Deep learning for portfolio
        optimization. J. Financial Data Science 2(4). doi:10.3905/jfds.2020.1.042.

    Example:
        >>> import torch
        >>> from arch.data import wti
        >>> prices = torch.tensor(wti.load().to_numpy()[-600:])  # (T, N = 1), USD per barrel
        >>> weights = PortfolioLstm()(prices[None])
        >>> weights.shape, bool((weights >= 0).all()), weights[0, 0].item()
        (torch.Size([1, 600, 1]), True, 0.0)
    """

    def __init__(self, config: PortfolioLstmConfig = PortfolioLstmConfig()) -> None:
        super().__init__()
        self.config = config
        self.lstm = LSTM(len(config.trends) + 2, config.hidden, batch_first=True)
        self.head = nn.Linear(config.hidden, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        self.target = VolatilityTarget(config.volatility, leverage=config.leverage, rows_per_year=config.rows_per_year)

    def forward(
        self,
        prices: Tensor,  # (B, T, N)
        rolls: Tensor | None = None,  # (B, T, N) bool
    ) -> Tensor:  # (B, T, N)
        """Weights of every row in one pass."""
        return self.weights(self.inputs(prices, rolls))

    def inputs(self, prices: Tensor, rolls: Tensor | None = None) -> PortfolioInputs:
        """Features, covariances and masks of investable and priced assets, from raw prices.

        Raises:
            ValueError: prices are not floating point (B, T, N), or rolls are not bool of that shape.
        """
        if prices.dim() != 3 or not prices.is_floating_point():
            got = f"{tuple(prices.shape)} of {prices.dtype}"
            raise ValueError(f"PortfolioLstm: prices must be floating point (B, T, N); got {got}")
        if rolls is not None and (rolls.dtype != torch.bool or rolls.shape != prices.shape):
            got = f"{tuple(rolls.shape)} of {rolls.dtype}"
            raise ValueError(f"PortfolioLstm: rolls must be bool {tuple(prices.shape)}, like prices; got {got}")
        returns = log_returns(prices)
        returns = returns if rolls is None else torch.where(rolls, torch.nan, returns)
        returns = returns.clamp(-self.config.cap, self.config.cap)
        covariance = ewm_covariance(returns, halflife=self.config.halflife, ignore_na=True)
        is_variance = torch.eye(covariance.shape[-1], dtype=torch.bool, device=covariance.device)
        covariance = torch.where(is_variance, covariance.clamp(min=self.config.floor), covariance)  # NaN stays
        investable = returns.isfinite().cumsum(-2) >= self.config.warmup
        has_price = torch.isfinite(prices) & (prices > 0)
        return PortfolioInputs(self._features(returns, covariance), covariance, investable, has_price)

    def weights(self, inputs: PortfolioInputs) -> Tensor:  # (B, T, N)
        """Weights from the inputs of the network."""
        volatility = inputs.covariance.diagonal(dim1=-2, dim2=-1).sqrt()
        trend = inputs.features[..., len(self.config.trends) - 1]
        score = trend + self.score_correction(inputs.features).to(trend)
        raw = torch.tanh(score) if self.config.long_short else score.exp()
        raw = torch.where(inputs.investable, raw / torch.where(inputs.investable, volatility, 1.0), 0.0)
        # normalize absolute weights to sum 1: avoids tiny numbers in the volatility target
        raw = raw / raw.abs().sum(-1, keepdim=True).clamp(min=torch.finfo(raw.dtype).tiny)
        scaled = self.target(raw, inputs.covariance)
        return linear_recurrence((~inputs.has_price).to(scaled), torch.where(inputs.has_price, scaled, 0.0))

    def score_correction(self, features: Tensor) -> Tensor:  # (B, T, N, F) -> (B, T, N)
        """Correction of the score by the network, within +-bound."""
        B, T, N, width = features.shape
        sequences = features.to(self.head.weight.dtype).transpose(1, 2).reshape(B * N, T, width)
        out = self.config.bound * torch.tanh(self.head(self.lstm(sequences)[0]))  # (B N, T, 1)
        return out.reshape(B, N, T).transpose(1, 2)

    def _features(self, returns: Tensor, covariance: Tensor) -> Tensor:  # (B, T, N), (B, T, N, N) -> (B, T, N, F)
        """Standardized trends, the last return, and the log ratio of volatility to its long-run level."""
        variance = covariance.diagonal(dim1=-2, dim2=-1)
        valid = returns.isfinite()
        steps = torch.where(valid, returns, 0.0)
        path, count = steps.cumsum(-2), valid.cumsum(-2)
        trends = []
        for k in self.config.trends:
            past = F.pad(path, (0, 0, k, 0))[..., : path.shape[-2], :]
            trends.append((path - past) / (k * variance).sqrt())
        long_run = steps.square().cumsum(-2) / count.clamp(min=1)
        ratio = (variance / long_run.clamp(min=self.config.floor)).log() / 2
        features = torch.stack([*trends, steps / variance.sqrt(), ratio], -1)
        return torch.where(features.isfinite(), features, 0.0).clamp(-5, 5)
