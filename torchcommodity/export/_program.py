"""A forecaster as everybody can call it: raw prices and their days in, quantiles out."""

import torch
from torch import Tensor, nn

from torchcommodity.export._roll_calendar import Calendar
from torchcommodity.forecast import Forecaster


class RawPrices(nn.Module):
    """The forecaster's model with the calendar of rolls inside.

    Its answer has the bits of `forecast.predict`: both call the same model with the same rolls.
    """

    def __init__(self, forecaster: Forecaster) -> None:
        super().__init__()
        self.model = forecaster.model.eval()
        rolls = any(forecaster.contracts)
        self.calendar = Calendar(forecaster.contracts, forecaster.horizons[-1]) if rolls else None

    def forward(self, prices: Tensor, days: Tensor) -> Tensor:  # (B, T, N), (B, T) int64 -> (B, H, N, Q)
        quantiles: Tensor = self.model(prices, None if self.calendar is None else self.calendar(days))
        return quantiles


def program(forecaster: Forecaster, least: int) -> torch.export.ExportedProgram:
    """The graph of ATen operators and ours, for any batch and any number of rows from `least` on."""
    free = {0: torch.export.Dim("B", min=1), 1: torch.export.Dim("T", min=least)}
    prices = torch.full((2, least + 1, len(forecaster.symbols)), 50.0, dtype=torch.double)
    days = torch.arange(least + 1).repeat(2, 1)
    with torch.no_grad():
        return torch.export.export(RawPrices(forecaster), (prices, days), dynamic_shapes=(free, free))
