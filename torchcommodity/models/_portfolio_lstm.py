"""Portfolio LSTM: raw prices to the weights of a portfolio at every row, trained on what it would have made.

Legend: B batch, T time, N assets, F features.

    returns -> EWMA covariance, standardized trends               (B, T, N, N), (B, T, N, K)
    score = trend + bound tanh(LSTM(features))                    the trend alone before training
    long-short:  w = tanh(score) / sigma                          untrained: time-series momentum, without its jumps
    long only:   w = softmax(score) / sigma                       untrained: inverse volatility, tilted to what rose
    w scaled to one volatility; an asset without a price today keeps its weight
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torchcommodity.nn import LSTM, VolatilityTarget
from torchcommodity.ops import ewm_covariance, linear_recurrence, log_returns


@dataclass(frozen=True)
class PortfolioLstmConfig:
    """Everything that shapes a PortfolioLstm; the defaults are those of the published table."""

    long_short: bool = False
    volatility: float = 0.10  # a year, aimed at by the covariance that is known
    leverage: float = 3.0  # most that absolute weights may sum to
    rows_per_year: int = 252
    halflife: float = 42.0  # rows, of the covariance
    trends: tuple[int, ...] = (5, 21, 63, 126, 252)  # rows; the last is the trend of the untrained portfolio
    cap: float = 0.25  # a larger |log-return| counts as this in covariance and features
    floor: float = 1e-6  # least variance per row, 0.1 % a day: a price that stands still is no safe haven
    warmup: int = 252  # returns an asset must have before it is bought
    hidden: int = 8
    bound: float = 1.0  # the network moves a score by less than this

    def __post_init__(self) -> None:
        if not self.trends or list(self.trends) != sorted(set(self.trends)) or self.trends[0] < 1:
            raise ValueError(f"PortfolioLstmConfig: trends must be positive and strictly rising; got {self.trends}")
        if self.warmup < 2 or self.hidden < 1 or not min(self.halflife, self.bound, self.cap, self.floor) > 0:
            must = "warmup >= 2, hidden >= 1, halflife, bound, cap and floor > 0"
            raise ValueError(f"PortfolioLstmConfig: {must}; got {self}")


class View(NamedTuple):
    """What the model sees at every row; nothing in it is learned."""

    features: Tensor  # (B, T, N, F) without unit, cut off at +-5; 0 where unknown
    covariance: Tensor  # (B, T, N, N) per row
    known: Tensor  # (B, T, N) bool: enough returns to be bought
    priced: Tensor  # (B, T, N) bool: a price today, at which it can be traded


class PortfolioLstm(nn.Module):
    """Raw prices (B, T, N) to weights (B, T, N): what to hold from the close of each row to the close of the next.

    Args:
        config: the settings; every asset passes through the same network, so that N is free.

    A weight is a share of wealth, negative where short; what is left is cash. An asset with fewer than
    `config.warmup` returns has weight 0; one without a price today cannot be traded and keeps its weight. A price that
    is NaN, zero or negative is missing. Rows on which `rolls` says that the contract changed are left out of
    trends and covariances: their return holds the gap between two contracts, which nobody earned. Row t depends on
    rows <= t only; it earns from row t + 1 on, which `losses.net_returns` sees to.

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
        """The weights of every row in one pass."""
        return self.weights(self.view(prices, rolls))

    def view(self, prices: Tensor, rolls: Tensor | None = None) -> View:
        """Features, covariances and what can be traded, from raw prices; without gradient to the network."""
        self._check(prices, rolls)
        returns = log_returns(prices)
        returns = returns if rolls is None else torch.where(rolls, torch.nan, returns)
        returns = returns.clamp(-self.config.cap, self.config.cap)
        covariance = self._floored(ewm_covariance(returns, halflife=self.config.halflife, ignore_na=True))
        known = returns.isfinite().cumsum(-2) >= self.config.warmup
        return View(self._features(returns, covariance), covariance, known, torch.isfinite(prices) & (prices > 0))

    def weights(self, view: View) -> Tensor:  # (B, T, N)
        """What the network makes of what it sees."""
        volatility = view.covariance.diagonal(dim1=-2, dim2=-1).sqrt()
        trend = view.features[..., len(self.config.trends) - 1]
        score = trend + self.correction(view.features).to(trend)
        raw = torch.tanh(score) if self.config.long_short else score.exp()
        raw = torch.where(view.known, raw / torch.where(view.known, volatility, 1.0), 0.0)
        # to sum 1, so that what the volatility target starts from has a size
        raw = raw / raw.abs().sum(-1, keepdim=True).clamp(min=torch.finfo(raw.dtype).tiny)
        sized = self.target(raw, view.covariance)
        return linear_recurrence((~view.priced).to(sized), torch.where(view.priced, sized, 0.0))

    def correction(self, features: Tensor) -> Tensor:  # (B, T, N, F) -> (B, T, N)
        """What the network adds to a score, within +-bound; every asset by the same network."""
        B, T, N, width = features.shape
        rows = features.to(self.head.weight.dtype).transpose(1, 2).reshape(B * N, T, width)
        out = self.config.bound * torch.tanh(self.head(self.lstm(rows)[0]))  # (B N, T, 1)
        return out.reshape(B, N, T).transpose(1, 2)

    def _floored(self, covariance: Tensor) -> Tensor:  # (B, T, N, N)
        """Variances on the diagonal are at least the floor; NaN, where there is none, stays."""
        own = torch.eye(covariance.shape[-1], dtype=torch.bool, device=covariance.device)
        return torch.where(own, covariance.clamp(min=self.config.floor), covariance)

    def _features(self, returns: Tensor, covariance: Tensor) -> Tensor:  # (B, T, N), (B, T, N, N) -> (B, T, N, F)
        """Standardized trends, the last return, and the log of the volatility over its own long-run mean."""
        variance = covariance.diagonal(dim1=-2, dim2=-1)
        present = returns.isfinite()
        move = torch.where(present, returns, 0.0)
        path, count = move.cumsum(-2), present.cumsum(-2)
        sizes = []
        for k in self.config.trends:
            past = F.pad(path, (0, 0, k, 0))[..., : path.shape[-2], :]
            sizes.append((path - past) / (k * variance).sqrt())
        long_run = move.square().cumsum(-2) / count.clamp(min=1)
        ratio = (variance / long_run.clamp(min=self.config.floor)).log() / 2
        found = torch.stack([*sizes, move / variance.sqrt(), ratio], -1)
        return torch.where(found.isfinite(), found, 0.0).clamp(-5, 5)

    def _check(self, prices: Tensor, rolls: Tensor | None) -> None:
        if prices.dim() != 3 or not prices.is_floating_point():
            got = f"{tuple(prices.shape)} of {prices.dtype}"
            raise ValueError(f"PortfolioLstm: prices must be floating point (B, T, N); got {got}")
        if rolls is not None and (rolls.dtype != torch.bool or rolls.shape != prices.shape):
            got = f"{tuple(rolls.shape)} of {rolls.dtype}"
            raise ValueError(f"PortfolioLstm: rolls must be bool {tuple(prices.shape)}, like the prices; got {got}")
