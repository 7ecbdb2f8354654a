"""The exchanges' roll rules as tensors: a graph that has them needs the dates of the rows and nothing else."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from torchcommodity.data import business_days, contract, roll_days

FIRST, LAST = np.datetime64("1970-01-01"), np.datetime64("2060-12-31")  # rows may lie on these days and between
BEFORE = np.datetime64("1969-12-01")  # day 0 of the tables: the first row has an open day before it
MONTH = 16  # a stamp is MONTH * number of rolls so far + calendar month of the last one


class Calendar(nn.Module):
    """`data.roll_months` of N contracts as a table look-up: (B, T) days to (B, T + ahead, N) rolls.

    Args:
        contracts: N product codes, keys of `data.CONTRACTS`; None = spot, which never rolls.
        ahead: business days of each contract's market to go on after the last row.

    A day outside 1970-01-01 to 2060-12-31 is an index error, never another day's roll.

    Example:
        >>> days = torch.arange(18372, 18376)[None]  # 2020-04-20 to 2020-04-23
        >>> Calendar(["CL", None], ahead=0)(days)[0].T.tolist()
        [[0, 0, 4, 0], [0, 0, 0, 0]]
    """

    stamps: Tensor  # (P, D) int16, of the last roll of each product up to each day
    opened: Tensor  # (M, D) int16, open days of each market up to each day
    open_days: Tensor  # (M, K) int32, the days themselves

    def __init__(self, contracts: Sequence[str | None], ahead: int) -> None:
        super().__init__()
        self.ahead = ahead
        products = sorted({code for code in contracts if code is not None})
        markets = sorted({contract(code).market for code in products})
        self.columns = [None if code is None else products.index(code) for code in contracts]
        self.markets = [markets.index(contract(code).market) for code in products]
        days = np.arange(BEFORE, LAST + 2 * ahead + 32)
        is_open = np.stack([np.is_busday(days, busdaycal=business_days(market)) for market in markets])
        least = is_open.sum(1).min()
        open_days = np.stack([np.flatnonzero(row)[:least] for row in is_open])
        self.register_buffer("stamps", torch.from_numpy(np.stack([_stamps(code, days) for code in products])))
        self.register_buffer("opened", torch.from_numpy(is_open.cumsum(1).astype(np.int16)))
        self.register_buffer("open_days", torch.from_numpy(open_days.astype(np.int32)))

    def forward(self, days: Tensor) -> Tensor:  # (B, T) int64 days since 1970-01-01 -> (B, T + ahead, N) int64
        places = torch.where(days < 0, self.stamps.shape[1], days + _number(FIRST))
        rows = [torch.cat([places, self._following(market, places[:, -1:])], 1) for market in range(len(self.opened))]
        found = [self._rolls(product, rows[market]) for product, market in enumerate(self.markets)]
        return torch.stack([torch.zeros_like(rows[0]) if p is None else found[p] for p in self.columns], -1)

    def _following(self, market: int, last: Tensor) -> Tensor:  # (B, 1) -> (B, ahead)
        ordinal = self.opened[market][last].to(torch.int64) + torch.arange(self.ahead, device=last.device)
        return self.open_days[market][ordinal].to(torch.int64)

    def _rolls(self, product: int, rows: Tensor) -> Tensor:  # (B, R) -> (B, R)
        earlier = torch.cat([rows[:, :1] - 1, rows[:, :-1]], 1)
        now, before = (self.stamps[product][days].to(torch.int64) for days in (rows, earlier))
        return torch.where(now != before, now % MONTH, 0)


def _stamps(code: str, days: np.ndarray) -> np.ndarray:  # (D,) -> (D,) int16
    rolled = roll_days(code, days[0], days[-1])
    months = np.append(0, rolled.astype("datetime64[M]").astype(np.int64) % 12 + 1)
    count = np.searchsorted(rolled, days, side="right")
    stamps: np.ndarray = (MONTH * count + months[count]).astype(np.int16)
    return stamps


def _number(day: np.datetime64) -> int:
    """The place of a day in the tables."""
    return int((day - BEFORE).astype(np.int64))
