"""Joint returns of a panel on complete rows, before and after a date."""

import numpy as np
import torch
from torch import Tensor

from torchcommodity.data import Panel
from torchcommodity.training import roll_adjusted_returns


def complete_returns(panel: Panel) -> tuple[Tensor, np.ndarray]:  # (R, N), (R,)
    """Roll-adjusted log-returns on the rows where every symbol has one, and their dates.

    Example:
        >>> from torchcommodity import data
        >>> returns, dates = complete_returns(data.embedded(["WTI", "BRENT"]))
        >>> returns.shape[1], bool(returns.isfinite().all()), len(dates) == len(returns)
        (2, True, True)
    """
    returns = roll_adjusted_returns(panel)
    complete = torch.isfinite(returns).all(1)
    return returns[complete], panel.dates[complete.numpy()]


def split_returns(panel: Panel, through: str, window: int) -> tuple[Tensor, Tensor, np.ndarray]:
    """Split complete returns at a date; also return the dates of the second part.

    Args:
        panel: real prices.
        through: last date of the first part.
        window: minimum number of rows of the second part, one window.

    Raises:
        ValueError: fewer rows than `window` follow the date.

    Example:
        >>> from torchcommodity import data
        >>> _, later, dates = split_returns(data.embedded(["WTI"]), "2016-12-30", 252)
        >>> len(later) == len(dates), str(dates[0])
        (True, '2017-01-03')
    """
    returns, dates = complete_returns(panel)
    count = int((dates <= np.datetime64(through)).sum())
    if len(returns) - count < window:
        rule = f"at least {window} rows with a return of every symbol must follow {through}"
        raise ValueError(f"evaluate_scenarios: {rule}; got {len(returns) - count}; choose an earlier date")
    return returns[:count], returns[count:], dates[count:]
