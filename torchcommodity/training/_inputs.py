"""Inputs of a model from a panel: prices, past and scheduled contract rolls, the futures curve."""

from typing import NamedTuple

from torch import Tensor

from torchcommodity.data import Panel


class ModelInputs(NamedTuple):
    """Inputs of a model without their batch axis."""

    prices: Tensor  # (T, N)
    # (T + A, N) int64: month of a roll, 0 without one, -1 where the market is closed; the last A rows are ahead
    rolls: Tensor | None = None
    curve: Tensor | None = None  # (T, N, C) prices of nearby contracts

    def before(self, stop: int) -> "ModelInputs":
        """Rows before `stop`, as known at that time; the roll calendar still extends A rows beyond the last price."""
        rolls = None if self.rolls is None else self.rolls[: len(self.rolls) - len(self.prices) + stop]
        return ModelInputs(self.prices[:stop], rolls, None if self.curve is None else self.curve[:stop])

    def batch(self) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Inputs with a batch axis of size one, for `model(*inputs.batch())`."""
        prices, rolls, curve = (None if x is None else x.unsqueeze(0) for x in self)
        assert prices is not None
        return prices, rolls, curve


def model_inputs(panel: Panel, ahead: int) -> ModelInputs:
    """Build the inputs of a model from a panel, with the roll calendar of the next `ahead` rows.

    Rolls are on the dates of the calendar even where prices are missing, so that the calendar known at a row does
    not depend on later prices.

    Args:
        panel: raw prices, with `contracts` and `curve` if they are futures.
        ahead: A, at least the longest horizon of the model.

    Returns:
        Prices only, for a panel without contracts; otherwise prices, rolls, and the curve if the panel has one.

    >>> from torchcommodity import data
    >>> panel = data.embedded(["WTI"]).between("2018-01-01", "2018-12-31").with_contracts({"WTI": "CL"})
    >>> inputs = model_inputs(panel, ahead=126)
    >>> inputs.prices.shape, inputs.rolls.shape
    (torch.Size([249, 1]), torch.Size([375, 1]))
    """
    prices = panel.values.plain().detach()
    if not any(panel.contracts) and panel.deliveries is None:
        return ModelInputs(prices)
    rolls = panel.roll_calendar(ahead)
    closed = ~panel.open_days() & (rolls[: len(panel)] == 0)
    rolls[: len(panel)][closed] = -1
    return ModelInputs(prices, rolls, None if panel.curve is None else panel.curve.plain().detach())
