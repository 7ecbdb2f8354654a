"""Returns of futures with and without the gap between two contracts."""

import numpy as np
import torch
from torch import Tensor

from torchcommodity.data import Panel, roll_months
from torchcommodity.ops import log_returns


def roll_gaps(panel: Panel) -> Tensor:  # (T, N)
    """The part of each log-return that is only the passage to another contract: ln F_{1+n}(s) - ln F_1(s).

    s is the row of the last positive price before t, and n the number of rolls after s up to t; F_1, F_2, ... are the
    nearby contracts of the panel's curve. Nobody earns the gap: who holds contract 2 over the roll earns
    ln F_1(t) - ln F_2(s).

    Args:
        panel: prices with `contracts`, and `curve` where it is known.

    Returns:
        `(T, N)` float64, log-return, no unit: zero on a row without a roll and for a symbol without a contract, NaN on
        a roll that the curve does not know. Row t uses prices up to row t - 1 and the calendar.

    Source: the roll return of Erb, Harvey (2006), The Strategic and Tactical Value of Commodity Futures, Financial
    Analysts Journal 62(2), here on the day of the roll.

    >>> from torchcommodity import data
    >>> panel = data.embedded()["WTI"].between("2018-12-18", "2018-12-21")
    >>> roll_gaps(panel)[:, 0].tolist()  # spot
    [0.0, 0.0, 0.0, 0.0]
    >>> roll_gaps(panel.with_contracts({"WTI": "CL"}))[:, 0].tolist()  # were it the front month, without a curve
    [0.0, 0.0, nan, 0.0]
    """
    rows = _last_priced(panel)
    counts = _rolls_since(panel, rows)
    if panel.curve is None:
        return torch.where(counts > 0, torch.nan, torch.zeros_like(panel.values.plain()))
    contracts = panel.curve.shape[-1]
    before = panel.curve.plain().gather(0, rows[..., None].expand(-1, -1, contracts))
    before = torch.cat([before, torch.full_like(before[..., :1], torch.nan)], -1)  # beyond the curve: unknown
    entered = before.gather(-1, counts.clamp(max=contracts)[..., None]).squeeze(-1)
    return torch.where(counts > 0, _log(entered) - _log(before[..., 0]), 0.0)


def roll_adjusted_returns(panel: Panel) -> Tensor:  # (T, N)
    """Log-returns of the contract that is held: the roll gap is taken out, so that somebody can have earned them.

    r_t = ln F_1(t) - ln F_{1+n}(s), with s the last priced row and n the rolls since; without a roll the plain return.

    Returns:
        `(T, N)` float64, log-return. NaN where the plain return is missing, and on a roll that the curve does not know:
        a zero there would claim a return that nobody saw, and lower the volatility. A portfolio leaves the asset
        uninvested on such a row.

    >>> from torchcommodity import data
    >>> panel = data.embedded()["WTI"].between("2018-12-18", "2018-12-21").with_contracts({"WTI": "CL"})  # as if
    >>> [round(r, 3) for r in roll_adjusted_returns(panel)[:, 0].tolist()]
    [nan, 0.039, nan, -0.006]
    """
    return log_returns(panel.values.plain()) - roll_gaps(panel)


def non_roll_returns(panel: Panel) -> Tensor:  # (T, N)
    """Log-returns with NaN on every roll: what volatility is taken over.

    `ops.riskmetrics_variance` and its like skip a NaN, so that neither the gap nor a return estimated across it enters.

    >>> from torchcommodity import data, ops
    >>> panel = data.embedded()["WTI"].between("2018-01-01").with_contracts({"WTI": "CL"})  # as if
    >>> int(non_roll_returns(panel).isnan().sum() - ops.log_returns(panel.values).isnan().sum())
    12
    """
    rolled = panel.rolls(ahead=0) > 0
    return torch.where(rolled, torch.nan, log_returns(panel.values.plain()))


def _last_priced(panel: Panel) -> Tensor:  # (T, N)
    """The row of the last positive price before each row; the row itself where there is none."""
    own = torch.arange(len(panel))[:, None].expand(panel.values.shape)
    latest = torch.where(panel.values.plain() > 0, own, -1).cummax(0).values
    before = torch.cat([torch.full_like(latest[:1], -1), latest[:-1]])
    return torch.where(before < 0, own, before)


def _rolls_since(panel: Panel, rows: Tensor) -> Tensor:  # (T, N), (T, N) -> (T, N)
    """How many rolls lie between those rows and each priced row; 0 where there is no price."""
    none = np.zeros(len(panel), dtype=np.int64)
    columns = [none if code is None else roll_months(code, panel.dates, ahead=0) > 0 for code in panel.contracts]
    passed = torch.from_numpy(np.stack(columns, axis=1).cumsum(axis=0))
    return torch.where(panel.values.plain() > 0, passed - passed.gather(0, rows), 0)


def _log(closes: Tensor) -> Tensor:
    return torch.where(closes > 0, closes, torch.nan).log()
