"""HAR-GARCH: the forecaster without a network, calibrated in closed form."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from torchcommodity.models._field_types import check_fields
from torchcommodity.models._har import Har, HarOutput
from torchcommodity.models._har_config import HarConfig
from torchcommodity.opkit import Past


@dataclass(frozen=True)
class HarGarchConfig:
    """Settings of `HarGarch`; the defaults are those of the published results."""

    har: HarConfig = field(default_factory=HarConfig)

    def __post_init__(self) -> None:
        check_fields(self)


class HarGarch(nn.Module):
    """Raw prices (B, T, N) to quantiles (B, H, N, Q) of the cumulative log-return after the last row, from `Har` alone.

    Args:
        assets: N, the number of symbols.
        config: settings.

    Prices, rolls and curve are those of `Har`. The forecast starts from the last positive price; a symbol in its
    warm-up is NaN. Row t depends on rows <= t only.

    Example:
        >>> import torch
        >>> from arch.data import wti
        >>> prices = torch.tensor(wti.load().to_numpy()[-600:])  # (T, N = 1), USD per barrel
        >>> HarGarch(1)(prices[None]).shape
        torch.Size([1, 4, 1, 19])
    """

    def __init__(self, assets: int, config: HarGarchConfig = HarGarchConfig()) -> None:
        super().__init__()
        self.config = config
        self.har = Har(assets, config.har)

    def forward(
        self,
        prices: Tensor,
        rolls: Tensor | None = None,
        curve: Tensor | None = None,
        extra_variances: Tensor | None = None,
    ) -> Tensor:
        """Quantiles (B, H, N, Q) after the last row."""
        return self.har.last_quantiles(self.har(prices, rolls, curve, extra_variances, last_rows=1))

    def update(
        self,
        past: Past,
        prices: Tensor,
        rolls: Tensor | None = None,
        curve: Tensor | None = None,
        extra_variances: Tensor | None = None,
    ) -> Tensor:
        """`forward` after more rows, from what was kept of the rows before; `rolls` begins at the first new row."""
        return self.har.last_quantiles(self.har(prices, rolls, curve, extra_variances, last_rows=1, past=past))

    def correction(self, har_output: HarOutput) -> Tensor:  # (B, T, H, N)
        """Zero: there is no network."""
        return torch.zeros_like(har_output.shift)
