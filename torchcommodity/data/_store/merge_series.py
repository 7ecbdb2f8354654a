"""Merge fetched parts of series into a panel."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from torchcommodity.data._core.arrays import Array
from torchcommodity.data._core.errors import DataError, Finding, condense
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._quality.inspect import inspect
from torchcommodity.opkit import MetadataTensor


class Part(NamedTuple):
    """A series of a panel as fetched from `start` on (None = its whole history), a panel of one column."""

    symbol: str
    start: np.datetime64 | None
    panel: Panel


def merge_series(panel: Panel, parts: Sequence[Part]) -> Panel:
    """Replace the prices of each part's symbol from its start on; rows that lose their last price are dropped.

    Raises:
        DataError: a symbol that the panel does not have, or a part in another unit.
    """
    dates = np.unique(np.concatenate([panel.dates, *(part.panel.dates for part in parts)]))
    rows = np.searchsorted(dates, panel.dates)
    prices = _spread(panel.values.plain().numpy(), rows, len(dates))
    units, provenance = list(panel.units), list(panel.provenance)
    for part in parts:
        column = panel.symbols.index(panel.select([part.symbol]).symbols[0])
        if part.start is not None and part.panel.units[0] != units[column]:
            units_in_words = f"{units[column]!r}, as stored; got {part.panel.units[0]!r}"
            raise DataError(
                f"update: {part.symbol!r}: expected prices in {units_in_words}; --full reads them all again"
            )
        first = part.panel.dates[0] if part.start is None else min(part.start, part.panel.dates[0])
        prices[(dates >= first) | (part.start is None), column] = np.nan
        prices[np.searchsorted(dates, part.panel.dates), column] = part.panel.values.plain().numpy()[:, 0]
        units[column], provenance[column] = part.panel.units[0], part.panel.provenance[0]
    was_empty = np.isin(dates, panel.dates[np.isnan(panel.values.plain().numpy()).all(axis=1)])
    valid_rows = ~np.isnan(prices).all(axis=1) | was_empty
    curve = None
    if panel.curve is not None:
        values = _spread(panel.curve.plain().numpy(), rows, len(dates))[valid_rows]
        curve = MetadataTensor(torch.from_numpy(values))
    merged = Panel(
        MetadataTensor(torch.from_numpy(prices[valid_rows])),
        dates[valid_rows],
        panel.symbols,
        tuple(units),
        tuple(provenance),
        panel.contracts,
        curve,
        deliveries=None if panel.deliveries is None else _spread(panel.deliveries, rows, len(dates))[valid_rows],
    )
    return replace(merged, findings=_findings(panel, merged, parts))


def _spread(values: Array, rows: Array, count: int) -> Array:
    """The values on their rows of `count`; missing on the others."""
    missing = "NaT" if values.dtype.kind == "M" else np.nan
    result = np.full((count, *values.shape[1:]), missing, dtype=values.dtype)
    result[rows] = values
    return result


def _findings(panel: Panel, merged: Panel, parts: Sequence[Part]) -> tuple[Finding, ...]:
    """Those of the merged prices, and those that reading made: of the stored panel, and of rows after its last one."""
    current = inspect(merged)
    inspected = {finding.kind for finding in (*inspect(panel), *current)} | {"cached copy"}
    updated, last = {part.symbol: part for part in parts}, str(panel.dates[-1])
    reading = [f for f in panel.findings if f.symbol not in updated or updated[f.symbol].start is not None]
    for part in parts:
        new = (replace(f, symbol=part.symbol) for f in part.panel.findings if f.symbol)
        reading += [f for f in new if part.start is None or f.date > last]
    return condense([*(finding for finding in reading if finding.kind not in inspected), *current])
