"""Predictions as JSON, made by a worker from the quantiles of the artifact."""

import numpy as np
import numpy.typing as npt
import torch
from pydantic_core import to_json
from torch import Tensor

from torchcommodity.export import Metadata
from torchcommodity.serve.http._messages import OutputSelection, PriceWindow
from torchcommodity.serve.http._notes import finding_document, note, window_findings

Mask = npt.NDArray[np.bool_]


def encode_prediction(metadata: Metadata, window: PriceWindow, selection: OutputSelection, quantiles: Tensor) -> bytes:
    """Prediction for one instance, bit for bit equal to `forecast.predict`; NaN becomes null.

    Args:
        metadata: of the artifact.
        window: the prices of the instance.
        selection: horizons, levels and quantity of the response.
        quantiles: (H, N, Q) quantiles of the cumulative log-return.
    """
    prices, positive = window.prices, window.prices > 0  # the others are NaN or not positive
    counts = positive.sum(0)
    rows = len(prices) - 1 - positive[::-1].argmax(0)  # of the last positive price
    last = np.where(counts > 0, prices[rows, np.arange(len(rows))], np.nan)
    if selection.quantity == "price":
        quantiles = torch.from_numpy(last)[None, :, None] * quantiles.exp()
    findings = window_findings(metadata, window)
    origins = np.datetime_as_string(window.days[rows].astype("datetime64[D]")).tolist()
    prediction = {
        "symbols": metadata.symbols,
        "units": metadata.units,
        "origins": [origin if count else None for origin, count in zip(origins, counts)],
        "last": last.tolist(),
        "horizons": [metadata.horizons[h] for h in selection.horizons],
        "levels": [metadata.levels[q] for q in selection.levels],
        "quantity": selection.quantity,
        "quantiles": quantiles.numpy()[np.ix_(selection.horizons, range(len(rows)), selection.levels)].tolist(),
        "notes": [*_notes(metadata, counts, ((prices == last) | ~positive).all(0)), *map(note, findings)],
        "findings": list(map(finding_document, findings)),
    }
    return to_json(prediction, inf_nan_mode="null")


def _notes(metadata: Metadata, counts: npt.NDArray[np.int64], is_constant: Mask) -> list[str]:
    short = f"no forecast yet: needs more than {metadata.warmup} positive prices; has"
    return [
        f"{symbol}: {short} {count}" if count <= metadata.warmup else f"{symbol}: all {count} prices are equal"
        for symbol, count, constant in zip(metadata.symbols, counts, is_constant)
        if count <= metadata.warmup or constant
    ]
