"""HAR-LSTM: the econometric scale of `Har`, corrected by an LSTM over each symbol's features."""

from dataclasses import dataclass, replace
from typing import Annotated

import torch
from torch import Tensor
from torch.nn import functional as F

from torchcommodity import nn as layers
from torchcommodity.models._config_fields import Bounds, PositiveInt
from torchcommodity.models._har import HarOutput
from torchcommodity.models._har_config import ModelConfig
from torchcommodity.models._har_network import HarNetwork, correction_head


@dataclass(frozen=True)
class HarLstmConfig(ModelConfig):
    """Settings of `HarLstm`; the defaults are those of the published results."""

    registered = "har-lstm"
    hidden: PositiveInt = 8
    features: tuple[int, ...] = ()  # indices of the features of `Har` used by the network; () = all
    rows: Annotated[int, Bounds(ge=0)] = 0  # last rows used by the network for a forecast; 0 = all

    def __post_init__(self) -> None:
        super().__post_init__()
        available = set(range(self.har.features))
        if not set(self.features) <= available or list(self.features) != sorted(set(self.features)):
            raise ValueError(
                f"HarLstmConfig: features must be increasing indices in 0..{len(available) - 1}; got {self.features}"
            )

    def build(self, assets: int) -> HarNetwork:
        return HarLstm(assets, self)


class HarLstm(HarNetwork):
    """Raw prices (B, T, N) to quantiles (B, H, N, Q) of the cumulative log-return after the last row.

    Args:
        assets: N, the number of symbols; one network is shared by all of them.
        config: settings.

    Prices, rolls and curve are those of `Har`. The forecast starts from the last positive price; a symbol in its
    warm-up is NaN. Row t depends on rows <= t only. The network computes in its own dtype. Its head is
    initialized to zero, so that the untrained model equals `Har` bit for bit.

    Example:
        >>> import torch
        >>> from arch.data import wti
        >>> prices = torch.tensor(wti.load().to_numpy()[-600:])  # (T, N = 1), USD per barrel
        >>> HarLstm(1)(prices[None]).shape
        torch.Size([1, 4, 1, 19])
    """

    config: HarLstmConfig
    recurrence = "lstm"

    def __init__(self, assets: int, config: HarLstmConfig = HarLstmConfig()) -> None:
        super().__init__(assets, config)
        self.lstm = layers.LSTM(len(config.features) or config.har.features, config.hidden, batch_first=True)
        self.head = correction_head(config.hidden, config)
        self.last_rows = config.rows or None

    def last_quantiles(self, har_output: HarOutput) -> Tensor:  # (B, H, N, Q)
        """Quantiles after the last row; the network computes no other correction."""
        last = HarOutput(*(x[:, -1:] for x in har_output))
        raw_correction = self.last_correction(self.network_inputs(har_output)).unsqueeze(1)  # (B N, 1, H)
        return self.har.quantiles(last, self.from_sequences(raw_correction).mT)[:, 0]

    def last_correction(self, inputs: Tensor) -> Tensor:  # (B N, T, F) -> (B N, H)
        """Raw correction of log sigma at the last row."""
        correction: Tensor = self.head(self.lstm(inputs)[0][:, -1])
        return correction

    def select_inputs(self, features: list[int]) -> "HarLstm":
        """The model with the network of some of its features, in increasing order."""
        state = self.state_dict()
        state["lstm.weight_ih_l0"] = state["lstm.weight_ih_l0"][:, features]
        before = self.config.features or tuple(range(self.config.har.features))
        return self._rebuilt(replace(self.config, features=tuple(before[k] for k in features)), state)

    def limit_rows(self, rows: int) -> "HarLstm":
        """The model with the network of the last rows."""
        return self._rebuilt(replace(self.config, rows=rows), self.state_dict())

    def _rebuilt(self, config: HarLstmConfig, state: dict[str, Tensor]) -> "HarLstm":
        model = HarLstm(self.har.assets, config)
        model.har.set_price_scale(self.har.scale)
        model.load_state_dict(state)
        return model.eval()

    def correction(self, har_output: HarOutput) -> Tensor:  # (B, T, H, N)
        """Raw correction of log sigma at every row."""
        x = self.network_inputs(har_output)
        if not self.config.rows:
            return self.from_sequences(self.head(self.lstm(x)[0])).mT
        # the LSTM skips rows of NaN, so the first windows are shorter
        windows = F.pad(x, (0, 0, self.config.rows - 1, 0), value=torch.nan).unfold(1, self.config.rows, 1).mT
        states = self.lstm(windows.flatten(0, 1))[0][:, -1].unflatten(0, x.shape[:2])  # (B N, T, C)
        return self.from_sequences(self.head(states)).mT

    def network_inputs(self, har_output: HarOutput) -> Tensor:  # (B N, T, F)
        """The selected features, one sequence per symbol."""
        selected = self.config.features
        features = har_output.features[..., list(selected)] if selected else har_output.features
        return self.to_sequences(features)
