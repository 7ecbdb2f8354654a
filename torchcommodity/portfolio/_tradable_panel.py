"""Prices, tradable returns and rolls of a panel, the inputs of every portfolio."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from torch_opkit.arguments import operation
from torchcommodity.data import check_daily, check_not_synthetic, to_panel
from torchcommodity.training import check_prices, check_returns, roll_adjusted_returns


class TradablePanel(NamedTuple):
    """Prices, tradable returns and rolls, (T, N) each."""

    prices: Tensor  # as quoted; NaN where missing
    returns: Tensor  # simple, of the contract held; NaN where no return can be earned
    rolls: Tensor  # bool: the contract is rolled at the close of the previous row

    def before(self, row: int) -> "TradablePanel":
        """Select the rows before `row`."""
        return TradablePanel(*(x[:row] for x in self))


@operation("tradable_panel")
def tradable_panel(prices: Any) -> TradablePanel:
    """Convert prices to the inputs of a portfolio: prices, roll-adjusted simple returns and rolls.

    The return after missing prices spans the gap, during which the position cannot change. On a roll without a curve
    the return is NaN: the asset is not invested over that row, but the roll still costs.

    Args:
        prices: anything that `data.to_panel` takes.

    Raises:
        TypeError: `prices` has another type.
        ValueError: the panel is synthetic, or not daily; a symbol has no positive, only equal, or negative prices.

    Example:
        >>> from torchcommodity import data
        >>> panel = tradable_panel(data.embedded(["WTI"]))
        >>> panel.returns.shape == panel.prices.shape, bool(panel.rolls.any())  # spot prices have no contracts
        (True, False)
    """
    panel = to_panel(prices)
    check_not_synthetic(panel)
    check_daily(panel.dates)
    check_prices(panel)
    check_returns(panel, "a portfolio")
    returns = torch.expm1(roll_adjusted_returns(panel))
    return TradablePanel(panel.values.plain().detach(), returns, panel.rolls(ahead=0) > 0)
