"""Graph of a forecaster from raw prices and dates to quantiles."""

import copy

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from torchcommodity.export._roll_calendar import RollCalendar
from torchcommodity.forecast import Forecaster


class RawPriceForecaster(nn.Module):
    """The forecaster's model with its roll calendar: prices (B, T, N) and days (B, T) to quantiles (B, H, N, Q).

    The result equals that of `forecast.predict` bit for bit, because both call the same model with the same rolls.
    """

    def __init__(self, forecaster: Forecaster) -> None:
        super().__init__()
        if forecaster.record.own_rolls:
            raise ValueError(
                "export: the forecaster was fitted on series that roll on other days than by the rule of the exchange, "
                "which is all that an artifact knows; fit it on prices that roll at expiry (--roll expiry)"
            )
        self.model = _freeze_constraints(forecaster.model.eval())
        has_rolls = any(forecaster.contracts)
        if has_rolls and forecaster.frequency != "daily":
            raise ValueError(
                f"export: a forecaster of {forecaster.frequency} prices must have no contracts, because the roll "
                f"calendar of the graph counts trading days; got {', '.join(filter(None, forecaster.contracts))}"
            )
        self.calendar = RollCalendar(forecaster.contracts, forecaster.horizons[-1]) if has_rolls else None

    def forward(self, prices: Tensor, days: Tensor) -> Tensor:  # (B, T, N), (B, T) int64 -> (B, H, N, Q)
        quantiles: Tensor = self.model(prices, None if self.calendar is None else self.calendar(days))
        return quantiles


def _freeze_constraints(model: nn.Module) -> nn.Module:
    """Copy of a model with the values of constrained parameters: no graph has to compute a matrix exponential."""
    model = copy.deepcopy(model)
    for module in filter(parametrize.is_parametrized, list(model.modules())):
        # not remove_parametrizations: it deletes an attribute of the class, which the copy shares with the original
        values = {name: getattr(module, name).detach() for name in module.parametrizations}  # type: ignore[union-attr]
        module.__class__ = parametrize.type_before_parametrizations(module)
        del module.parametrizations
        for name, value in values.items():
            module.register_buffer(name, value)
    return model


def export_program(forecaster: Forecaster, min_rows: int) -> torch.export.ExportedProgram:
    """Export the graph of ATen and `commodity` operators, for any batch size and at least `min_rows` rows."""
    dynamic = {0: torch.export.Dim("B", min=1), 1: torch.export.Dim("T", min=min_rows)}
    prices = torch.full((2, min_rows + 1, len(forecaster.symbols)), 50.0, dtype=torch.double)
    days = torch.arange(min_rows + 1).repeat(2, 1)
    with torch.no_grad():
        return torch.export.export(RawPriceForecaster(forecaster), (prices, days), dynamic_shapes=(dynamic, dynamic))
