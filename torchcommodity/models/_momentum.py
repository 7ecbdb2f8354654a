"""What trends say of where a monthly price goes: its own, and the common move of all prices.

Legend: B batch, T time, L last rows, N symbols, H horizons, K trends, F features.

    x_f     what is expected of related prices, over sigma_h
            ln P less its exponentially weighted mean, half-lives of 6, 24 and 60 months, over sigma_1
            sum of the last 1, 3 and 12 returns, over its sigma; the means over the symbols of the first two
    m_h     sigma_h sum_f c_hf x_f / rms_hf, each ratio within +-4 and the sum within +-1/4; c is pooled over symbols
"""

from functools import reduce

import torch
from torch import Tensor, nn

from torch_opkit import Past
from torchcommodity.models._har_config import HarConfig
from torchcommodity.models._returns import carry_forward
from torchcommodity.ops import ewm_mean

HALFLIVES = (6, 24, 60)  # months
MIN_VALUES = 12  # prices before the first deviation
COMMON = 2  # trends, the shortest first, of which the mean over symbols is a feature
LARGEST = 4.0  # ratio of a feature to its root mean square
LIMIT = 0.25  # of sigma


class Momentum(nn.Module):
    """Expected change of log prices of months from trends, the same rule for all symbols: zero until calibrated.

    Args:
        config: settings of `Har`.

    On a row on which a symbol has no price its own trends stay as they are. The common move is the mean of the symbols
    with a price on the row.
    """

    rms: Tensor  # (H, F) root mean square of the features on training rows
    coefficients: Tensor  # (H, F)

    def __init__(self, config: HarConfig) -> None:
        super().__init__()
        self.config = config
        shape = len(config.horizons), 1 + len(HALFLIVES) + len(config.trends) + COMMON
        self.register_buffer("rms", torch.ones(shape, dtype=torch.double))
        self.register_buffer("coefficients", torch.zeros(shape, dtype=torch.double))

    def forward(
        self, related: Tensor, prices: Tensor, trends: Tensor, variance: Tensor, past: Past
    ) -> Tensor:  # (B, L, H, N)
        """Expected change over each horizon, zero during warm-up; the arguments are those of `features`."""
        return self.expected(self.features(related, prices, trends, variance, past), variance)

    def features(
        self,
        related: Tensor,  # (B, L, H, N) what is expected of related prices
        prices: Tensor,  # (B, T, N)
        trends: Tensor,  # (B, L, N, K) sums of returns, of `Har.trends`
        variance: Tensor,  # (B, L, N) slow variance per row; NaN during warm-up
        past: Past,
    ) -> tuple[Tensor, ...]:  # F of (B, L, H, N) or (B, L, 1, N)
        """The features x; zero where they are not known."""
        known, L = (prices > 0) & (prices < torch.inf), variance.shape[1]
        log = torch.where(known, prices, torch.nan).log()
        horizons = variance.new_tensor(self.config.horizons)[:, None]
        features = [related / (horizons * variance.unsqueeze(2)).sqrt()]
        for halflife in HALFLIVES:
            mean = past.call(
                f"trend{halflife}", ewm_mean, log, halflife=halflife, min_periods=MIN_VALUES, ignore_na=True
            )
            deviation = torch.where(mean.isfinite() & known, log - mean, 0.0)
            last = carry_forward(deviation, known, past, f"trend_deviation{halflife}")[:, -L:]
            features.append((last / variance.sqrt()).unsqueeze(2))
        changes = [trend / (k * variance).sqrt() for k, trend in zip(self.config.trends, trends.unbind(-1))]
        features += [x.unsqueeze(2) for x in changes]
        for x in changes[:COMMON]:
            counted = known[:, -L:] & x.isfinite()
            total = torch.where(counted, x, 0.0).sum(-1, keepdim=True)
            features.append((total / counted.sum(-1, keepdim=True).clamp(min=1)).expand_as(x).unsqueeze(2))
        return tuple(torch.where(x.isfinite(), x, 0.0) for x in features)

    def expected(self, features: tuple[Tensor, ...], variance: Tensor) -> Tensor:  # (B, L, N) -> (B, L, H, N)
        """m_h of features at rows of a slow variance, zero during warm-up."""
        # added one by one: in `sum` or a matrix product the order depends on the number of rows
        total = reduce(
            torch.add,
            (
                c[:, None] * self.bounded(x, rms[:, None])
                for x, rms, c in zip(
                    features, self.rms.to(variance).unbind(1), self.coefficients.to(variance).unbind(1)
                )
            ),
        )
        horizons = variance.new_tensor(self.config.horizons)[:, None]
        sigma = (horizons * variance.unsqueeze(2)).sqrt()
        return torch.where(sigma.isfinite(), total.clamp(-LIMIT, LIMIT) * sigma, 0.0)

    @staticmethod
    def bounded(x: Tensor, rms: Tensor) -> Tensor:
        """A feature over its root mean square, within +-4."""
        return (x / rms).clamp(-LARGEST, LARGEST)
