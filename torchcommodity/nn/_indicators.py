"""Technical indicators with learned half-lives."""

import math

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import register_parametrization
from torch.types import Device

from torch_opkit.arguments import check_integer, check_panel, raise_invalid
from torchcommodity.nn._parametrizations import Positive
from torchcommodity.ops import indicators

AVERAGES = ("rsi", "fast", "slow", "signal")


class Indicators(nn.Module):
    """RSI, MACD and MACD histogram with learned, positive half-lives.

    An exponential average of half-life h has the smoothing factor a = 1 - 2^(-1/h): Wilder's of period n has a = 1/n,
    that of a MACD a = 2 / (n + 1). It starts at the first value (mode "pandas" of `ops.indicators.rsi` and `macd`).

    Args:
        rsi, fast, slow, signal: initial periods in rows, with TA-Lib's names and defaults.
        assets: N for half-lives per asset; None shares them.

    Shape:
        prices (..., T, N), in any unit; NaN, zero and negative are missing -> (..., T, N, 3): RSI (0 to 100), MACD and
        histogram of log-prices, in log-return. Causal. Missing prices are skipped; NaN during the warm-up of
        the current periods.

    The parameter is `halflife` (4, 1) or (4, N), in the order of the periods. As in TA-Lib, the shorter of fast and
    slow is the fast one.

    Raises:
        ValueError, TypeError: a period is below 2, or prices are not a floating-point panel of `assets` columns.

    References:
        Wilder (1978). New Concepts in Technical Trading Systems. ISBN 0894590278.
        Appel (1979). The Moving Average Convergence-Divergence Trading Method. Signalert.

    Example:
        >>> import torch
        >>> from torchcommodity import nn
        >>> layer = nn.Indicators(rsi=2, fast=2, slow=3, signal=2)
        >>> layer(torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]]))[-1, 0]
        tensor([8.1633e+01, 2.7756e-02, 6.2064e-03], grad_fn=<SelectBackward0>)
        >>> layer.learned_parameters()["halflife rsi"]
        tensor([1.])
    """

    def __init__(
        self,
        rsi: int = 14,
        fast: int = 12,
        slow: int = 26,
        signal: int = 9,
        assets: int | None = None,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_integer("Indicators", 2, rsi=rsi, fast=fast, slow=slow, signal=signal)
        check_integer("Indicators", 1, assets=1 if assets is None else assets)
        weights = [1 / rsi, *(2 / (n + 1) for n in (fast, slow, signal))]
        start = torch.tensor([-math.log(2) / math.log1p(-a) for a in weights], device=device, dtype=dtype)
        self.halflife = nn.Parameter(start.unsqueeze(-1).repeat(1, assets or 1))
        register_parametrization(self, "halflife", Positive(unit=start.unsqueeze(-1)))

    def forward(self, prices: Tensor) -> Tensor:  # (..., T, N) -> (..., T, N, 3)
        """RSI, MACD and histogram at every row."""
        check_panel("Indicators", prices=prices)
        valid = prices.isfinite() & (prices > 0)
        logs = prices.where(valid, 1.0).log().where(valid, torch.nan)
        weight = -torch.expm1(-math.log(2) / self.halflife.to(prices))  # (4, 1) or (4, N)
        if weight.shape[1] not in (1, prices.shape[-1]):
            rule = f"prices must be (..., T, N) with N = {weight.shape[1]}, which have a half-life each"
            raise_invalid("Indicators", rule, prices=prices)
        rsi = indicators.rsi(prices.where(valid, torch.nan), 1 / weight[0], mode="pandas")
        macd = indicators.macd(logs, *(2 / weight[1:] - 1), mode="pandas")
        return torch.stack([rsi, macd.macd, macd.macdhist], -1)

    def learned_parameters(self) -> dict[str, Tensor]:
        """Half-lives in rows."""
        return {f"halflife {name}": value for name, value in zip(AVERAGES, self.halflife.detach())}
