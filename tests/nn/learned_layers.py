"""Layers with learned parameters, by class name, and prices to run them on."""

from collections.abc import Callable

import torch
from torch import Tensor

from torchcommodity import data, nn, ops

LAYERS: dict[str, Callable[[], torch.nn.Module]] = {
    "EwmVolatility": lambda: nn.EwmVolatility([5.0, 21.0], assets=3),
    "GarchVariance": lambda: nn.GarchVariance(assets=3),
    "Indicators": lambda: nn.Indicators(),
    "CorrelationRegime": lambda: nn.CorrelationRegime(30, min_periods=20, lag=10, threshold=0.2),
}
OF_RETURNS = ("EwmVolatility", "GarchVariance")


def three_symbols() -> Tensor:  # (T, 3)
    """Oil and gas with different holidays; WTI with a negative price as on 20 April 2020."""
    panel = data.embedded(["WTI", "BRENT", "HENRY_HUB"]).between("2014-01-01", "2015-06-30")
    values = panel.values.plain().clone()
    values[200, 0], values[201, 0] = -37.63, torch.nan
    return values


def outputs(name: str, layer: torch.nn.Module, prices: Tensor) -> tuple[Tensor, ...]:
    output = layer(ops.log_returns(prices) if name in OF_RETURNS else prices)
    return (output,) if isinstance(output, Tensor) else tuple(output)
