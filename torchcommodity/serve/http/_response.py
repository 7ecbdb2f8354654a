"""From quantiles to what a client reads."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchcommodity.export import Metadata
from torchcommodity.forecast import last_prices
from torchcommodity.serve.http._windows import Wanted, Window


def prediction(about: Metadata, window: Window, quantiles: Tensor, wanted: Wanted) -> dict[str, Any]:
    """One instance's answer; numbers have the bits of `forecast.predict`, NaN is None.

    Args:
        quantiles: (H, N, Q) of the cumulative log-return, as the artifact gives them.
    """
    prices = torch.from_numpy(window.prices)
    counts = (prices > 0).sum(0)  # all are finite or NaN
    row, last = last_prices(prices)
    last = torch.where(counts > 0, last, torch.nan)
    if wanted.quantity == "price":
        quantiles = last[None, :, None] * quantiles.exp()
    asked = quantiles[wanted.horizons][:, :, wanted.levels]
    days = np.asarray(window.days[row.numpy()]).astype("datetime64[D]")
    return {
        "symbols": about.symbols,
        "units": about.units,
        "origins": [str(day) if some else None for day, some in zip(days, counts.tolist())],
        "last": _plain(last.tolist()),
        "horizons": [about.horizons[h] for h in wanted.horizons],
        "levels": [about.levels[q] for q in wanted.levels],
        "quantity": wanted.quantity,
        "quantiles": [[_plain(levels) for levels in symbols] for symbols in asked.tolist()],
        "notes": _notes(about, counts.tolist()),
    }


def metadata(about: Metadata) -> dict[str, str]:
    """Of the artifact that answered."""
    return {
        "sha256": about.sha256,
        "version": about.version,
        "model": about.model,
        "trained_through": about.trained_through,
    }


def _plain(numbers: list[float]) -> list[float | None]:
    return [number if np.isfinite(number) else None for number in numbers]


def _notes(about: Metadata, counts: list[int]) -> list[str]:
    least = about.warmup
    return [
        f"{symbol}: no forecast yet; it needs more than {least} positive prices and has {count}"
        for symbol, count in zip(about.symbols, counts)
        if count <= least
    ]
