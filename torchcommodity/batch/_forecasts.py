"""Forecast a block of panels: panels of equal length in one call where results stay bitwise equal, else one by one."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch

from torchcommodity.batch._panels import Array, PanelRows, ParsedPanel, RejectedPanel, parse_block
from torchcommodity.batch._sources import PanelTable
from torchcommodity.data import summarize_names
from torchcommodity.export import Artifact
from torchcommodity.forecast import last_prices
from torchcommodity.models import price_after

MAX_CELLS = 65_536  # prices in one call
# In this graph every operator acts on the values of one panel. A network multiplies matrices, and the last bits of such
# a product depend on the other rows; an aoti or onnx file may do the same with any graph.
SAME_BITS_IN_BATCHES = {("har-garch", "pt2")}


class BlockResult(NamedTuple):
    """Outcome of consecutive panels.

    `last` is the name of the last one, `rows` the number of their rows in the table. `forecasts` and `rejected` are
    Arrow tables in the order of the panels.
    """

    last: str | None
    rows: int
    completed: int
    ignored_rows: int
    forecasts: Any
    rejected: Any


class Quantiles(NamedTuple):
    """Forecasts of P panels: origin (P, N) in days, last price (P, N), quantiles (P, N, H, Q) as of the artifact."""

    origins: Array
    last: Array
    changes: Array


def forecast_block(artifact: Artifact, source: PanelTable, block: Sequence[PanelRows]) -> BlockResult:
    """Forecast consecutive panels of the sorted table; those that cannot be forecast are rejected with a reason."""
    results = parse_block(block, artifact.metadata, source)
    parsed = [panel for panel in results if isinstance(panel, ParsedPanel)]
    quantiles = _call(artifact, parsed)
    finite = np.asarray(np.isfinite(quantiles.changes).all(axis=(1, 2, 3)))
    rejected = {panel.name: panel for panel in results if isinstance(panel, RejectedPanel)}
    for k in np.flatnonzero(~finite):
        pairs = zip(artifact.metadata.symbols, quantiles.changes[k])
        few = summarize_names(symbol for symbol, x in pairs if not np.isfinite(x).all())
        reason = f"expected more than {artifact.metadata.warmup} returns of every symbol; got too few of {few}"
        rejected[parsed[k].name] = RejectedPanel(parsed[k].name, reason)
    names = [parsed[k].name for k in np.flatnonzero(finite)]
    in_order = [rejected[rows.name] for rows in block if rows.name in rejected]
    rejections = pa.table(
        {
            "panel": pa.array([panel.name for panel in in_order], pa.string()),
            "reason": pa.array([panel.reason for panel in in_order], pa.string()),
        }
    )
    return BlockResult(
        block[-1].name if block else None,
        sum(rows.total for rows in block),
        len(names),
        sum(panel.ignored_rows for panel in parsed),
        _table(artifact, names, Quantiles(*(x[finite] for x in quantiles))),
        rejections,
    )


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


def _call(artifact: Artifact, panels: Sequence[ParsedPanel]) -> Quantiles:
    metadata = artifact.metadata
    P, N, H, Q = len(panels), len(metadata.symbols), len(metadata.horizons), len(metadata.levels)
    result = Quantiles(np.empty((P, N), dtype=np.int32), np.empty((P, N)), np.empty((P, N, H, Q)))
    in_batches = (metadata.model, metadata.format) in SAME_BITS_IN_BATCHES
    lengths = (len(panel.days) for panel in panels)
    for group in group_by_length(
        lengths, lambda rows: max(1, MAX_CELLS // (rows * len(metadata.columns))) if in_batches else 1
    ):
        prices = torch.from_numpy(np.stack([panels[k].prices for k in group]))
        days = torch.from_numpy(np.stack([panels[k].days for k in group]))
        row, last = last_prices(prices[..., :N], metadata.price_scale)
        result.origins[group], result.last[group] = days.gather(1, row), last
        result.changes[group] = artifact(prices, days).transpose(1, 2)
    return result


def _table(artifact: Artifact, names: Sequence[str], quantiles: Quantiles) -> Any:
    """One row per panel, symbol, horizon and level; the log-return of a price that may be negative is NaN."""
    metadata = artifact.metadata
    panel, symbol, horizon, level = (index.ravel() for index in np.indices(quantiles.changes.shape))
    last_price, change = quantiles.last[panel, symbol], torch.from_numpy(quantiles.changes.reshape(-1))
    scale = None if metadata.price_scale is None else metadata.price_scale[torch.from_numpy(symbol)]
    log_return = change if scale is None else torch.where(scale.isnan(), change, torch.nan)
    return pa.table(
        {
            "panel": pa.array(names, pa.string()).take(pa.array(panel)),
            "symbol": pa.array(metadata.symbols, pa.string()).take(pa.array(symbol)),
            "origin": pa.array(quantiles.origins[panel, symbol], pa.int32()).cast(pa.date32()),
            "last_price": last_price,
            "horizon": np.array(metadata.horizons, dtype=np.int32)[horizon],
            "level": np.array(metadata.levels)[level],
            "log_return": log_return.numpy(),
            "price": price_after(torch.from_numpy(last_price), change, scale).numpy(),
        }
    )
