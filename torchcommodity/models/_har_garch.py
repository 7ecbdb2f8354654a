"""HAR-GARCH: the forecaster without a network, calibrated in closed form."""

from dataclasses import dataclass

import torch
from torch import Tensor

from torch_opkit import Past
from torchcommodity.models._har import HarOutput
from torchcommodity.models._har_config import ModelConfig
from torchcommodity.models._har_network import HarNetwork
from torchcommodity.models._inputs import ModelInputs


@dataclass(frozen=True)
class HarGarchConfig(ModelConfig):
    """Settings of `HarGarch`; the defaults are those of the published results."""

    registered = "har-garch"

    def build(self, assets: int) -> HarNetwork:
        return HarGarch(assets, self)


class HarGarch(HarNetwork):
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

    config: HarGarchConfig
    last_rows = 1

    def __init__(self, assets: int, config: HarGarchConfig = HarGarchConfig()) -> None:
        super().__init__(assets, config)

    def last_quantiles(self, har_output: HarOutput) -> Tensor:  # (B, H, N, Q)
        """Quantiles after the last row."""
        return self.har.last_quantiles(har_output)

    def update(self, past: Past, inputs: ModelInputs) -> Tensor:  # (B, H, N, Q)
        """`forward` after more rows, from what was kept of the rows before; `rolls` begins at the first new row."""
        return self.last_quantiles(self.har(*inputs[:7], last_rows=self.last_rows, past=past))

    def correction(self, har_output: HarOutput) -> Tensor:  # (B, T, H, N)
        """Zero: there is no network."""
        return torch.zeros_like(har_output.shift)
