"""Exchange roll rules as lookup tables, so that the graph needs only the dates of its rows."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from torchcommodity.data import business_calendar, get_contract, roll_days

FIRST, LAST = np.datetime64("1970-01-01"), np.datetime64("2060-12-31")  # dates of the roll rules
SPOT_RANGE = ("1600-01-01", "2200-12-31")  # dates that `data.read` takes
TABLE_START = np.datetime64("1969-12-01")  # entry 0 of the tables: an open day precedes FIRST
FIRST_ENTRY = int((FIRST - TABLE_START).astype(np.int64))
MONTH_BASE = 16  # roll code = MONTH_BASE * number of rolls so far + calendar month of the last one, its last four bits


def calendar_range(contracts: Sequence[str | None]) -> tuple[str, str]:
    """First and last date of a row that a forecaster supports; spot prices need no roll rules."""
    return (str(FIRST), str(LAST)) if any(contracts) else SPOT_RANGE


def day_range(calendar: tuple[str, str]) -> tuple[int, int]:
    """Two dates in days since 1970-01-01."""
    first, last = (int(np.datetime64(day, "D").astype(np.int64)) for day in calendar)
    return first, last


class RollMonths(nn.Module):
    """`data.roll_months` of N contracts as a table lookup: (B, T) days to (B, T + ahead, N) rolls.

    A row on which the contract's market is closed is -1, as in the inputs of a model.

    Args:
        contracts: N product codes, keys of `data.CONTRACTS`; None = spot, which never rolls.
        ahead: business days of each contract's market to append after the last row.

    Raises:
        IndexError: a day is outside 1970-01-01 to 2060-12-31.

    Example:
        >>> days = torch.arange(18372, 18376)[None]  # 2020-04-20 to 2020-04-23
        >>> RollMonths(["CL", None], ahead=0)(days)[0].T.tolist()
        [[0, 0, 4, 0], [0, 0, 0, 0]]
    """

    roll_codes: Tensor  # (P, D) int16, last roll of each product up to each day
    open_counts: Tensor  # (M, D) int16, number of open days of each market up to each day
    open_days: Tensor  # (M, K) int32, the open days

    def __init__(self, contracts: Sequence[str | None], ahead: int) -> None:
        super().__init__()
        self.ahead = ahead
        products = sorted({code for code in contracts if code is not None})
        markets = sorted({get_contract(code).market for code in products})
        self.columns = [None if code is None else products.index(code) for code in contracts]
        self.markets = [markets.index(get_contract(code).market) for code in products]
        days = np.arange(TABLE_START, LAST + np.timedelta64(2 * ahead + 32, "D"))
        is_open = np.stack([np.is_busday(days, busdaycal=business_calendar(market)) for market in markets])
        min_count = is_open.sum(1).min()
        open_days = np.stack([np.flatnonzero(row)[:min_count] for row in is_open])
        roll_codes = []
        for code in products:
            rolls = roll_days(code, days[0], days[-1])
            months = np.append(0, rolls.astype("datetime64[M]").astype(np.int64) % 12 + 1)
            count = np.searchsorted(rolls, days, side="right")
            roll_codes.append((MONTH_BASE * count + months[count]).astype(np.int16))
        self.register_buffer("roll_codes", torch.from_numpy(np.stack(roll_codes)))
        self.register_buffer("open_counts", torch.from_numpy(is_open.cumsum(1).astype(np.int16)))
        self.register_buffer("open_days", torch.from_numpy(open_days.astype(np.int32)))

    def forward(self, days: Tensor) -> Tensor:  # (B, T) int64 days since 1970-01-01 -> (B, T + ahead, N) int64
        indices = torch.where(days < 0, self.roll_codes.shape[1], days + FIRST_ENTRY)
        before, last = indices[:, :1] - 1, indices[:, -1:]
        rows = []  # (B, 1 + T + ahead) by market: the day before the first row, the rows, the next open days
        for market in range(len(self.open_counts)):
            ordinal = self.open_counts[market][last].to(torch.int64) + torch.arange(self.ahead, device=last.device)
            rows.append(torch.cat([before, indices, self.open_days[market][ordinal].to(torch.int64)], 1))
        codes = [self.roll_codes[product][rows[market]] for product, market in enumerate(self.markets)]
        spot = torch.zeros_like(codes[0])
        panel = torch.stack([spot if product is None else codes[product] for product in self.columns], -1)
        is_roll = panel[:, 1:] != panel[:, :-1]
        closed = []  # (B, T + ahead) by column
        for product in self.columns:
            if product is None:
                closed.append(torch.zeros_like(rows[0][:, 1:], dtype=torch.bool))
            else:
                counts, entries = self.open_counts[self.markets[product]], rows[self.markets[product]][:, 1:]
                closed.append(counts[entries] == counts[entries - 1])
        is_closed = torch.stack(closed, -1)
        months = (panel[:, 1:] & (MONTH_BASE - 1)).to(torch.int64)
        return torch.where(is_roll, months, -is_closed.to(torch.int64))
