"""What the artifact says, and what it would have said on past days: each answer from the rows up to its day."""

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from torchcommodity.data import Panel
from torchcommodity.export import Artifact
from torchcommodity.training import one_thread, targets

ROWS = 250  # of outcomes that are looked back on: about a year of days


@dataclass(frozen=True)
class Hindsight:
    """Answers of every origin row from `first` to the last row of the panel, and what they met.

    `met` is the truth that `forecast.score` judges by: ln of the last positive price at or before row t + h over the
    positive price of row t; NaN where row t has none, or row t + h has not come.
    """

    first: int  # row of the first origin
    shown: int  # first row whose outcome is looked at
    quantiles: Tensor  # (P, H, N, Q) cumulative log-return
    met: Tensor  # (P, H, N)

    def known(self, h: int, rows: int, n: int) -> np.ndarray:
        """Rows of the origins whose forecast of symbol n met an outcome shown, at the h-th horizon of so many rows."""
        here = torch.isfinite(self.met[:, h, n]) & torch.isfinite(self.quantiles[:, h, n]).all(-1)
        origins = self.first + np.flatnonzero(here.numpy())
        found: np.ndarray = origins[origins + rows >= self.shown]
        return found


@one_thread()
def hindsight(artifact: Artifact, panel: Panel, rows: int = ROWS) -> Hindsight:
    """Ask the artifact on every day whose answer reaches one of the last `rows` rows; the last answer is today's.

    No look-ahead: the answer of row t is the artifact's on rows up to t, prices that came later are not handed to it.
    One call a row: a call takes milliseconds with `pt2`, some tenths of a second with `onnx`.

    Raises:
        ValueError: what the artifact refuses, such as too few rows.
    """
    prices, days = panel.values.plain()[None], torch.from_numpy(panel.dates.astype(np.int64))[None]
    longest, last = max(artifact.metadata.horizons), len(panel) - 1
    shown = max(last + 1 - rows, 0)
    first = min(max(artifact.metadata.min_rows - 1, shown - longest), last)
    answers = [artifact(prices[:, : t + 1], days[:, : t + 1]) for t in _until_the_end(range(first, len(panel)))]
    return Hindsight(first, shown, torch.cat(answers), targets(prices[0], artifact.metadata.horizons)[first:])


def _until_the_end(rows: Iterable[int]) -> Iterator[int]:
    """The rows, while the program is to go on: a thread that is killed inside torch takes the process down with it."""
    for row in rows:
        if not threading.main_thread().is_alive():
            raise SystemExit  # ends this thread without a word
        yield row
