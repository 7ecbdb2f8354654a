"""What a portfolio trades on: prices to decide by, returns that it can earn, and the days on which contracts roll."""

from typing import NamedTuple

import torch
from torch import Tensor

from torchcommodity.data import Panel, check_not_synthetic
from torchcommodity.training import roll_adjusted_returns


class Tradable(NamedTuple):
    """One panel as a portfolio meets it; (T, N) each."""

    prices: Tensor  # as quoted; NaN where missing
    returns: Tensor  # simple, of the contract that is held; NaN where nobody could earn one
    rolls: Tensor  # bool: the contract of the row before was left at its close

    def until(self, row: int) -> "Tradable":
        """The rows before `row`."""
        return Tradable(*(part[:row] for part in self))


def tradable(panel: Panel) -> Tradable:
    """Prices, roll-adjusted simple returns and rolls of a panel.

    A gap of missing prices is bridged: the next return spans it, and the position cannot be changed meanwhile. On a
    roll that no curve knows the return is NaN: the asset is not invested over that row, and pays for the roll.

    Raises:
        ValueError: the panel is synthetic.

    Example:
        >>> from torchcommodity import data
        >>> found = tradable(data.embedded()["WTI"])
        >>> found.returns.shape == found.prices.shape, bool(found.rolls.any())  # spot prices have no contracts
        (True, False)
    """
    check_not_synthetic("portfolio", panel)
    returns = torch.expm1(roll_adjusted_returns(panel))
    return Tradable(panel.values.plain().detach(), returns, panel.rolls(ahead=0) > 0)
