"""Base of every model: `Har`, and a network that corrects its log scale.

Legend: B batch, T time, N assets, H horizons, Q quantiles, F features.
"""

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from torch_opkit import Past
from torchcommodity.models._har import Har, HarOutput
from torchcommodity.models._har_config import ModelConfig
from torchcommodity.models._inputs import ModelInputs


@runtime_checkable
class Updatable(Protocol):
    """A model that forecasts after more rows from what was kept of the rows before."""

    def update(self, past: Past, inputs: ModelInputs) -> Tensor:
        """`forward` on the new rows."""


@runtime_checkable
class InputSelection(Protocol):
    """A model whose network can do with fewer features of `Har`, or fewer rows of them."""

    def network_inputs(self, har_output: HarOutput) -> Tensor:
        """(B N, T, F), one sequence of features per symbol."""

    def last_correction(self, inputs: Tensor) -> Tensor:
        """Raw correction (B N, H) of log sigma at the last row, from `network_inputs`."""

    def select_inputs(self, features: list[int]) -> "HarNetwork":
        """The model with the network of some of its features, in increasing order."""

    def limit_rows(self, rows: int) -> "HarNetwork":
        """The model with the network of the last rows."""


class HarNetwork(nn.Module):
    """Raw prices (B, T, N) to quantiles (B, H, N, Q) of the cumulative log-return after the last row.

    A network is a subclass: it builds its layers in `__init__`, the `head` last, and writes its `correction` of all
    rows, on which it is trained. `forward` forecasts from the last one of them; a network that costs less on the last
    row alone also overrides `last_quantiles`, with the same result.

    Args:
        assets: N, the number of symbols.
        config: settings.
    """

    config: ModelConfig
    head: nn.Linear  # to the correction of every horizon, see `correction_head`; one of the user's may lack it
    last_rows: int | None = None  # last rows of `Har` that a forecast depends on; None = all
    recurrence: str = ""  # name of the recurrent layer, if there is one whose units only the head reads
    lookback: int | None = None  # rows of the windows that a network other than a correction is trained on

    def __init__(self, assets: int, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.har = Har(assets, config.har)

    def forward(
        self,
        prices: Tensor,
        rolls: Tensor | None = None,
        curve: Tensor | None = None,
        extra_variances: Tensor | None = None,
        references: Tensor | None = None,
        days: Tensor | None = None,
        bars: Tensor | None = None,
    ) -> Tensor:
        """Quantiles (B, H, N, Q) after the last row; the inputs are those of `Har`."""
        return self.forecast(ModelInputs(prices, rolls, curve, extra_variances, references, days, bars))

    def forecast(self, inputs: ModelInputs) -> Tensor:  # (B, H, N, Q)
        """`forward` of inputs with a batch axis."""
        return self.last_quantiles(self.har(*inputs[:7], last_rows=self.last_rows))

    def last_quantiles(self, har_output: HarOutput) -> Tensor:  # (B, H, N, Q)
        """Quantiles after the last row from the output of `Har`."""
        return self.har.last_quantiles(har_output, self.correction(har_output))

    def correction(self, har_output: HarOutput) -> Tensor:  # (B, T, H, N)
        """Raw correction of log sigma at every row: zero in an untrained model, bounded and shrunk by `Har`."""
        raise NotImplementedError(f"{type(self).__name__} must define correction(har_output)")

    @property
    def forecasts_median(self) -> bool:
        """Whether the network forecasts the median itself, so that the location of `Har` does not explain it."""
        return False

    def to_sequences(self, x: Tensor) -> Tensor:  # (B, T, N, F) -> (B N, T, F)
        """One sequence per symbol, in the dtype of the network (prices are double)."""
        B, T, N, F = x.shape
        if hasattr(self, "head"):
            dtype = self.head.weight.dtype
        else:
            own = [p for name, p in self.named_parameters() if not name.startswith("har.") and p.is_floating_point()]
            dtype = own[0].dtype if own else x.dtype
        # to one axis first: torch 2.10 does not export `flatten(0, 1)` here, as it guards on two symbolic strides
        return x.to(dtype).transpose(1, 2).flatten().view(B * N, T, F)

    def from_sequences(self, sequences: Tensor) -> Tensor:  # (B N, T, C) -> (B, T, N, C)
        """Inverse of `to_sequences`."""
        panel: Tensor = sequences.unflatten(0, (-1, self.har.assets))
        return panel.transpose(1, 2)


def correction_head(inputs: int, config: ModelConfig) -> nn.Linear:
    """Linear layer to the correction of every horizon, initialized to zero, so that an untrained model equals `Har`."""
    layer = nn.Linear(inputs, len(config.har.horizons))
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def roll_adjusted_index(har_output: HarOutput) -> Tensor:  # (B, T, N)
    """Price index without roll gaps, starting near 1, as input of indicators; NaN on rows without a return."""
    valid = torch.isfinite(har_output.returns)
    path = torch.where(valid, har_output.returns, 0.0).cumsum(1).exp()
    return torch.where(valid, path, torch.nan)


def zero_nonfinite(x: Tensor) -> Tensor:
    """Replace NaN and infinite values by zero, with zero gradient."""
    return torch.where(torch.isfinite(x), x, 0.0)


def learned_parameters(model: nn.Module) -> dict[str, Tensor]:
    """Interpretable parameters that a model trains with its network, in their natural units.

    Args:
        model: a model of `models.MODELS`, or any module with layers `nn.EwmVolatility`, `nn.GarchVariance`,
            `nn.Indicators` or `nn.CorrelationRegime`.

    Returns:
        copies of half-lives (rows), GARCH parameters and thresholds by "layer.parameter", for comparison before and
        after training; empty for a model without such layers. The GARCH parameters of `Har` are calibrated, not
        trained, and not included.

    Example:
        >>> from torchcommodity.models import GarchLstm
        >>> learned_parameters(GarchLstm(1))["volatility.halflife"].flatten()
        tensor([ 5., 21., 63.])
    """
    parameters: dict[str, Tensor] = {}
    for name, layer in model.named_modules():
        values = layer.learned_parameters() if hasattr(layer, "learned_parameters") else {}
        parameters |= {f"{name}.{key}": value.clone() for key, value in values.items()}
    return parameters
