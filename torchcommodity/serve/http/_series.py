"""Rows that the server keeps between requests, so that a client sends only new ones."""

from collections import OrderedDict

import numpy as np

from torchcommodity.serve._request_error import invalid_field
from torchcommodity.serve.http._messages import PriceWindow


class SeriesCache:
    """The rows of up to `limit` series by owner and name; the least recently used one is dropped first.

    A series belongs to the token that began it: clients with another one neither read nor extend it.
    """

    def __init__(self, limit: int) -> None:
        self.limit, self._windows = limit, OrderedDict[tuple[str, str], PriceWindow]()

    def keep(self, owner: str, name: str, window: PriceWindow) -> None:
        """Keep these rows in place of those kept so far."""
        self._windows[owner, name] = window
        self._windows.move_to_end((owner, name))
        while len(self._windows) > self.limit:
            self._windows.popitem(last=False)

    def append(self, owner: str, name: str, rows: PriceWindow, field: str) -> PriceWindow:
        """All rows of a series: those that are kept, then the new ones. A client may repeat rows that are kept.

        Raises:
            RequestError: 422: no rows of this series are kept, or a row is not after them.
        """
        before = self._windows.get((owner, name))
        if before is None:
            raise invalid_field(f"{field}.series", "a series that the server keeps: send its history again", name)
        repeats = int(np.searchsorted(rows.days, before.days[-1], side="right"))
        index = np.searchsorted(before.days, rows.days[:repeats])
        old, new = before.prices[index], rows.prices[:repeats]
        same_prices = ((old == new) | (np.isnan(old) & np.isnan(new))).all(1)
        same = (before.days[index] == rows.days[:repeats]) & same_prices
        if not same.all():
            row = int(np.argmin(same))
            last, day = (str(np.datetime64(int(day), "D")) for day in (before.days[-1], rows.days[row]))
            raise invalid_field(f"{field}.dates[{row}]", f"a date after {last}, the last row of the series", day)
        return PriceWindow(
            np.concatenate([before.prices, rows.prices[repeats:]]), np.concatenate([before.days, rows.days[repeats:]])
        )
