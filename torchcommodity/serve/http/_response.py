"""Predictions as JSON, from the quantiles of the artifact."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchcommodity.forecast import last_prices
from torchcommodity.serve.http._series import Window
from torchcommodity.serve.http._served import ServedArtifact
from torchcommodity.serve.http._windows import OutputSelection


def prediction(
    metadata: ServedArtifact, window: Window, log_returns: npt.NDArray[np.float64], selection: OutputSelection
) -> dict[str, Any]:
    """Prediction for one instance, bit for bit equal to `forecast.predict`; NaN becomes None.

    Args:
        metadata: of the artifact.
        window: the prices of the instance.
        log_returns: (H, N, Q) quantiles of the cumulative log-return.
        selection: horizons, levels and quantity of the response.
    """
    prices, quantiles = torch.from_numpy(window.prices), torch.from_numpy(log_returns)
    counts = (prices > 0).sum(0)  # of positive prices; the others are NaN or not positive
    rows, last = last_prices(prices)
    last = torch.where(counts > 0, last, torch.nan)
    if selection.quantity == "price":
        quantiles = last[None, :, None] * quantiles.exp()
    selected = quantiles[selection.horizons][:, :, selection.levels]
    origins = np.asarray(window.days[rows.numpy()]).astype("datetime64[D]")
    return {
        "symbols": metadata.symbols,
        "units": metadata.units,
        "origins": [str(day) if count else None for day, count in zip(origins, counts.tolist())],
        "last": _finite(last.tolist()),
        "horizons": [metadata.horizons[h] for h in selection.horizons],
        "levels": [metadata.levels[q] for q in selection.levels],
        "quantity": selection.quantity,
        "quantiles": [[_finite(levels) for levels in symbols] for symbols in selected.tolist()],
        "notes": _notes(metadata, prices, counts.tolist()),
    }


def artifact_info(metadata: ServedArtifact) -> dict[str, str]:
    """Identity of the artifact: checksum, version, model and last training date."""
    return {
        "sha256": metadata.sha256,
        "version": metadata.version,
        "model": metadata.model,
        "trained_through": metadata.trained_through,
    }


def _finite(values: list[float]) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in values]


def _notes(metadata: ServedArtifact, prices: Tensor, counts: list[int]) -> list[str]:
    lowest, highest = (prices.where(prices > 0, bound) for bound in (torch.inf, -torch.inf))
    is_constant = (lowest.amin(0) == highest.amax(0)).tolist()
    short = f"no forecast yet: needs more than {metadata.warmup} positive prices; has"
    return [
        f"{symbol}: {short} {count}" if count <= metadata.warmup else f"{symbol}: all {count} prices are equal"
        for symbol, count, constant in zip(metadata.symbols, counts, is_constant)
        if count <= metadata.warmup or constant
    ]
