"""What the networks over `Har` share: sequences in, a head that starts at zero, and prices without roll gaps."""

import torch
from torch import Tensor, nn

from torchcommodity.models._har import HarOutput


def head(inputs: int, horizons: int) -> nn.Linear:
    """To the bend of every horizon; zero at first, so that an untrained model is `Har` bit for bit."""
    last = nn.Linear(inputs, horizons)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return last


def sequences(x: Tensor, network: nn.Linear) -> Tensor:  # (B, T, N, F) -> (B N, T, F)
    """Every symbol a sequence of its own, in the dtype of the network: that of prices is double."""
    return x.to(network.weight.dtype).transpose(1, 2).flatten(0, 1)


def panel(rows: Tensor, har_output: HarOutput) -> Tensor:  # (B N, T, C) -> (B, T, N, C)
    """Back from sequences to the panel that `market` has."""
    back: Tensor = rows.unflatten(0, (-1, har_output.prices.shape[-1]))
    return back.transpose(1, 2)


def index(har_output: HarOutput) -> Tensor:  # (B, T, N)
    """What one unit of money became on the days with a return: prices without roll gaps, for indicators to read; NaN on
    the other days."""
    known = torch.isfinite(har_output.returns)
    path = torch.where(known, har_output.returns, 0.0).cumsum(1).exp()
    return torch.where(known, path, torch.nan)


def finite(x: Tensor) -> Tensor:
    """Zero where a feature is not known yet."""
    return torch.where(torch.isfinite(x), x, 0.0)
