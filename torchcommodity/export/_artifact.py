"""The one thing that is served: a file of `export`, checked, loaded and called."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from torchcommodity.export import _checksum as seal
from torchcommodity.export._formats import aoti, onnx, pt2
from torchcommodity.export._metadata import Metadata, read

ZIP = b"PK\x03\x04"  # how an archive begins
Run = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Artifact:
    """A forecaster as one file of `export`, in any of its formats.

    Nothing is unpickled. A `pt2` file is data: its graph is refused if it names anything but operators on tensors. An
    `aoti` file holds machine code, as a program does: load one only from whom you would take a program.
    """

    about: Metadata
    run: Run

    @classmethod
    def load(cls, path: str | Path) -> "Artifact":
        """Read a file of `export`; its format is told by its contents.

        Raises:
            ValueError: the file is damaged, cut short, or was not written by `export`.
        """
        path = Path(path)
        raw, sha256 = seal.checked(path)
        try:
            return cls(*_opened(raw, sha256))
        except (ValueError, KeyError, TypeError, RuntimeError, AssertionError) as error:
            raise ValueError(f"Artifact.load: expected {path} to hold an artifact of export; got {error}") from error

    @torch.no_grad()
    def __call__(self, prices: Tensor, days: Tensor) -> Tensor:
        """Quantiles (B, H, N, Q) float64 of the cumulative log-return from the last row on.

        Args:
            prices: (B, T, N) float64 in `about.units`, the symbols in their order; NaN = missing. Zero and negative
                prices are real, and as in training count as missing.
            days: (B, T) int64, days since 1970-01-01, rising along T; rows are trading days.

        A symbol with no more than `about.warmup` positive prices is NaN. The forecast starts from its last positive
        price.

        Raises:
            ValueError, TypeError: shapes, dtypes, too few rows, an infinite price, days that do not rise or lie
                outside the calendar.
        """
        check(self.about, prices, days)
        return self.run(prices.contiguous(), days.contiguous())


def check(about: Metadata, prices: Tensor, days: Tensor) -> None:
    """Refuse, in words, what the graph would answer wrongly."""
    if prices.dtype != torch.float64 or days.dtype != torch.int64:
        raise TypeError(f"artifact: prices must be float64 and days int64; got {prices.dtype} and {days.dtype}")
    N, least = len(about.symbols), about.least_rows
    if prices.dim() != 3 or prices.shape[2] != N or days.shape != prices.shape[:2] or 0 in prices.shape:
        got = f"{tuple(prices.shape)} and {tuple(days.shape)}"
        raise ValueError(f"artifact: prices must be (B, T, N) with N={N} and days (B, T), none empty; got {got}")
    if prices.shape[1] < least:
        raise ValueError(f"artifact: at least {least} rows are needed; got {prices.shape[1]}")
    if torch.isinf(prices).any():
        raise ValueError("artifact: prices must be finite or NaN; got an infinite one")
    if (days.diff(dim=1) <= 0).any():
        raise ValueError("artifact: days must rise along T; got some that do not")
    first, last = about.days
    if (days[:, 0] < first).any() or (days[:, -1] > last).any():
        got = f"{np.datetime64(int(days.min()), 'D')} to {np.datetime64(int(days.max()), 'D')}"
        raise ValueError(f"artifact: days must lie between {' and '.join(about.calendar)}; got {got}")


def _opened(raw: bytes, sha256: str) -> tuple[Metadata, Run]:
    if not raw.startswith(ZIP):
        text, run = onnx.from_bytes(raw)
        return read(text, sha256), run
    records = pt2.read_records(raw)
    about = read(records[pt2.ABOUT].decode(), sha256)
    return about, aoti.from_bytes(raw) if about.format == "aoti" else pt2.from_records(records)
