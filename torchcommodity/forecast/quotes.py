"""What a forecaster reads of a panel: prices, the rolls of their contracts past and coming, the curve."""

from typing import NamedTuple

from torch import Tensor

from torchcommodity.data import Panel


class Quotes(NamedTuple):
    """The inputs of a model without their batch axis."""

    prices: Tensor  # (T, N)
    rolls: Tensor | None = None  # (T + A, N) int64: 0, or the month of the roll; the last A rows are coming days
    curve: Tensor | None = None  # (T, N, C) prices of nearby contracts

    def before(self, stop: int) -> "Quotes":
        """The rows before `stop` and what was known then: the calendar of rolls reaches as far ahead as it did."""
        rolls = None if self.rolls is None else self.rolls[: len(self.rolls) - len(self.prices) + stop]
        return Quotes(self.prices[:stop], rolls, None if self.curve is None else self.curve[:stop])

    def batch(self) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """A batch of one, as `model(*quotes.batch())` takes it."""
        prices, rolls, curve = (None if x is None else x.unsqueeze(0) for x in self)
        assert prices is not None
        return prices, rolls, curve


def quotes(panel: Panel) -> Quotes:
    """Everything that a forecaster reads of a panel."""
    return Quotes(panel.values.plain().detach())
