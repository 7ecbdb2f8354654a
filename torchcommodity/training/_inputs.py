"""Inputs of a model from a panel: prices, past and scheduled contract rolls, the futures curve."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchcommodity.data import Panel
from torchcommodity.training._device import to_device


class ModelInputs(NamedTuple):
    """Inputs of a model without their batch axis."""

    prices: Tensor  # (T, N)
    # (T + A, N) int64: month of a roll, 0 without one, -1 where the market is closed; the last A rows are ahead
    rolls: Tensor | None = None
    curve: Tensor | None = None  # (T, N, C) prices of nearby contracts
    extra_variances: Tensor | None = None  # (T, H, N, X) of `HarConfig.extra_terms`; NaN = no information
    averages: Tensor | None = None  # (N,) bool: whether prices are averages of their period, for `calibrate`

    def before(self, stop: int) -> "ModelInputs":
        """Rows before `stop`, as known at that time; the roll calendar still extends A rows beyond the last price."""
        rolls = None if self.rolls is None else self.rolls[: len(self.rolls) - len(self.prices) + stop]
        curve, extra = (None if x is None else x[:stop] for x in (self.curve, self.extra_variances))
        return ModelInputs(self.prices[:stop], rolls, curve, extra, self.averages)

    def to(self, device: torch.device) -> "ModelInputs":
        """Copy to a device; prices are float32 on a device without float64."""
        rest = (None if x is None else to_device(x, device) for x in self[1:])
        return ModelInputs(to_device(self.prices, device), *rest)

    def batch(self) -> tuple[Any, ...]:
        """Inputs with a batch axis of size one, for `model(*inputs.batch())`: three, or four with extra variances."""
        fields = self[: 3 if self.extra_variances is None else 4]
        return tuple(None if x is None else x.unsqueeze(0) for x in fields)


def model_inputs(panel: Panel, ahead: int, extra_variances: Tensor | None = None) -> ModelInputs:
    """Build the inputs of a model from a panel, with the roll calendar of the next `ahead` rows.

    Rolls are on the dates of the calendar even where prices are missing, so that the calendar known at a row does
    not depend on later prices.

    Args:
        panel: raw prices, with `contracts` and `curve` if they are futures.
        ahead: A, at least the longest horizon of the model.
        extra_variances: (T, H, N, X), see `covariate_variances`.

    Returns:
        Prices; rolls, for a panel with contracts, and the curve if it has one; the extra variances.

    >>> from torchcommodity import data
    >>> panel = data.embedded(["WTI"]).between("2018-01-01", "2018-12-31").with_contracts({"WTI": "CL"})
    >>> inputs = model_inputs(panel, ahead=126)
    >>> inputs.prices.shape, inputs.rolls.shape
    (torch.Size([249, 1]), torch.Size([375, 1]))
    """
    prices = panel.values.plain().detach()
    averages = torch.tensor(panel.averages) if any(panel.averages) else None
    if not any(panel.contracts) and panel.deliveries is None:
        return ModelInputs(prices, extra_variances=extra_variances, averages=averages)
    rolls = panel.roll_calendar(ahead)
    closed = ~panel.open_days() & (rolls[: len(panel)] == 0)
    rolls[: len(panel)][closed] = -1
    curve = None if panel.curve is None else panel.curve.plain().detach()
    return ModelInputs(prices, rolls, curve, extra_variances, averages)
