"""Exported forecaster: a file of `export`, verified, loaded and called."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from torchcommodity.export._checksum import read_verified
from torchcommodity.export._formats import aoti, onnx, pt2
from torchcommodity.export._metadata import Metadata, parse_metadata

ZIP_MAGIC = b"PK\x03\x04"


@dataclass(frozen=True)
class Artifact:
    """A forecaster exported to one file, in any format of `export`.

    Nothing is unpickled. A `pt2` file is data: its graph is rejected if it names anything but tensor operators. An
    `aoti` file contains machine code: load one only from a source whose programs you would run.
    """

    metadata: Metadata
    forward: Callable[[Tensor, Tensor], Tensor]

    @classmethod
    def load(cls, path: str | Path) -> "Artifact":
        """Read a file of `export`; the format is detected from its content.

        Raises:
            ValueError: the file is damaged, truncated, or was not written by `export`.
        """
        path = Path(path)
        content, sha256 = read_verified(path)
        try:
            return _load(content, sha256)
        except (ValueError, KeyError, TypeError, RuntimeError, AssertionError) as error:
            raise ValueError(f"Artifact.load: expected {path} to hold an artifact of export; got {error}") from error

    @torch.no_grad()
    def __call__(self, prices: Tensor, days: Tensor) -> Tensor:
        """Quantiles (B, H, N, Q) float64 of the cumulative log-return after the last row.

        Args:
            prices: (B, T, N) float64 in `metadata.units`, columns in the order of `metadata.symbols`. NaN is missing;
                zero and negative prices count as missing, as in training.
            days: (B, T) int64, days since 1970-01-01, strictly increasing along T; rows are trading days.

        A symbol with no more than `metadata.warmup` positive prices is NaN. The forecast starts from its last positive
        price.

        Raises:
            ValueError, TypeError: wrong shapes or dtypes, too few rows, an infinite price, days that do not increase or
                lie outside `metadata.calendar`.
        """
        check_inputs(self.metadata, prices, days)
        return self.forward(prices.contiguous(), days.contiguous())


def check_inputs(metadata: Metadata, prices: Tensor, days: Tensor) -> None:
    """Raise ValueError or TypeError for inputs that the graph would accept and answer wrongly."""
    if prices.dtype != torch.float64 or days.dtype != torch.int64:
        raise TypeError(f"artifact: prices must be float64 and days int64; got {prices.dtype} and {days.dtype}")
    N = len(metadata.symbols)
    if prices.dim() != 3 or prices.shape[2] != N or days.shape != prices.shape[:2] or 0 in prices.shape:
        got = f"{tuple(prices.shape)} and {tuple(days.shape)}"
        raise ValueError(f"artifact: prices must be (B, T, N) with N={N} and days (B, T), not empty; got {got}")
    if prices.shape[1] < metadata.min_rows:
        raise ValueError(f"artifact: prices must have at least {metadata.min_rows} rows; got {prices.shape[1]}")
    if torch.isinf(prices).any():
        raise ValueError("artifact: prices must be finite or NaN; got an infinite price")
    if (days.diff(dim=1) <= 0).any():
        raise ValueError("artifact: days must increase along T; got days that repeat or decrease")
    first, last = metadata.day_range
    if (days[:, 0] < first).any() or (days[:, -1] > last).any():
        got = f"{np.datetime64(int(days.min()), 'D')} to {np.datetime64(int(days.max()), 'D')}"
        raise ValueError(f"artifact: days must lie between {' and '.join(metadata.calendar)}; got {got}")


def _load(content: bytes, sha256: str) -> Artifact:
    if not content.startswith(ZIP_MAGIC):
        text, forward = onnx.from_bytes(content)
        return Artifact(parse_metadata(text, sha256), forward)
    records = pt2.read_records(content)
    metadata = parse_metadata(records[pt2.METADATA].decode(), sha256)
    forward = aoti.from_bytes(content) if metadata.format == "aoti" else pt2.from_records(records)
    return Artifact(metadata, forward)
