"""Forecast a block of panels: panels of equal length in one call where results stay bitwise equal, else one by one."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from torchcommodity.batch._panels import ParsedPanel, RejectedPanel
from torchcommodity.data import summarize_names
from torchcommodity.export import Artifact
from torchcommodity.forecast import last_prices

MAX_CELLS = 65_536  # prices in one call
# In this graph every operator acts on the values of one panel. A network multiplies matrices, and the last bits of such
# a product depend on the other rows; an aoti or onnx file may do the same with any graph.
SAME_BITS_IN_BATCHES = {("har-garch", "pt2")}


def forecast_block(artifact: Artifact, block: Sequence[ParsedPanel]) -> tuple[Any, list[RejectedPanel]]:
    """Forecast panels; return the table of forecasts in their order, and the panels whose forecast is not finite."""
    quantiles: dict[int, Any] = {}
    for group in group_by_length((len(panel.days) for panel in block), lambda rows: _max_batch(artifact, rows)):
        prices = torch.from_numpy(np.stack([block[k].prices for k in group]))
        days = torch.from_numpy(np.stack([block[k].days for k in group]))
        quantiles |= zip(group, artifact(prices, days))
    finite = [bool(quantiles[k].isfinite().all()) for k in range(len(block))]
    rejected = [
        RejectedPanel(panel.name, _reason(artifact, quantiles[k])) for k, panel in enumerate(block) if not finite[k]
    ]
    forecast = [k for k in range(len(block)) if finite[k]]
    return _table(artifact, [block[k] for k in forecast], [quantiles[k] for k in forecast]), rejected


def group_by_length(lengths: Iterable[int], max_size: Callable[[int], int]) -> Iterator[list[int]]:
    """Indices of equal lengths, in groups of at most `max_size(length)`; every index once.

    >>> list(group_by_length([3, 5, 3, 3], lambda length: 2))
    [[0, 2], [3], [1]]
    """
    indices: dict[int, list[int]] = {}
    for index, length in enumerate(lengths):
        indices.setdefault(length, []).append(index)
    for length, group in indices.items():
        size = max_size(length)
        yield from (group[k : k + size] for k in range(0, len(group), size))


def _max_batch(artifact: Artifact, rows: int) -> int:
    """Number of panels of `rows` rows in one call."""
    if (artifact.metadata.model, artifact.metadata.format) not in SAME_BITS_IN_BATCHES:
        return 1
    return max(1, MAX_CELLS // (rows * len(artifact.metadata.symbols)))


def _reason(artifact: Artifact, quantiles: torch.Tensor) -> str:
    metadata = artifact.metadata
    symbols = [s for s, x in zip(metadata.symbols, quantiles.transpose(0, 1)) if not x.isfinite().all()]
    few = summarize_names(symbols)
    return f"expected more than {metadata.warmup} returns of every symbol; got too few of {few}"


def _table(artifact: Artifact, panels: Sequence[ParsedPanel], quantiles: Sequence[torch.Tensor]) -> Any:
    """One row per panel, symbol, horizon and level."""
    metadata = artifact.metadata
    H, N, Q = len(metadata.horizons), len(metadata.symbols), len(metadata.levels)
    lasts = [last_prices(torch.from_numpy(panel.prices)) for panel in panels]
    origins = np.array([panel.days[row.numpy()] for panel, (row, _) in zip(panels, lasts)]).reshape(-1, N)
    prices = np.array([price.numpy() for _, price in lasts]).reshape(-1, N)
    log_returns = torch.stack(list(quantiles)).transpose(1, 2) if quantiles else torch.zeros(0, N, H, Q)
    panel, symbol, horizon, level = (index.ravel() for index in np.indices((len(panels), N, H, Q)))
    last_price = prices[panel, symbol]
    log_return = log_returns.reshape(-1)
    return pa.table(
        {
            "panel": pa.array([panel.name for panel in panels], pa.string()).take(pa.array(panel)),
            "symbol": pa.array(metadata.symbols, pa.string()).take(pa.array(symbol)),
            "origin": pa.array(origins[panel, symbol].astype(np.int32), pa.int32()).cast(pa.date32()),
            "last_price": last_price,
            "horizon": np.array(metadata.horizons, dtype=np.int32)[horizon],
            "level": np.array(metadata.levels)[level],
            "log_return": log_return.numpy(),
            "price": (torch.from_numpy(last_price) * log_return.exp()).numpy(),
        }
    )
