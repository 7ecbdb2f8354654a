"""References of a panel: prices on its dates that help to forecast its own."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from torchcommodity.data._core.errors import DataError, summarize_names
from torchcommodity.data._core.prices import Dates
from torchcommodity.opkit import MetadataTensor

if TYPE_CHECKING:
    from torchcommodity.data._core.panel import Panel


def check_references(references: "Panel", dates: Dates, symbols: Sequence[str]) -> None:
    """Raise DataError unless the references are on the same dates, and symbols of their own."""
    if both := [symbol for symbol in references.symbols if symbol in symbols]:
        raise DataError(f"panel: expected references other than its symbols; got {summarize_names(both)}")
    if not np.array_equal(references.dates, dates):
        raise DataError("panel: expected references on the dates of the panel; got others; see with_references")


def align_references(references: "Panel", panel: "Panel") -> "Panel":
    """The references of a panel and those of the other panel that it lacks, on its dates; NaN where there is no row.

    They are prices and no more: without contracts, curve and references of their own.
    """
    before = panel.references
    known = {*panel.symbols, *(() if before is None else before.symbols)}
    names = [symbol for symbol in references.symbols if symbol not in known]
    rows = np.searchsorted(references.dates, panel.dates).clip(max=len(references) - 1)
    shared = references.dates[rows] == panel.dates
    if not names and before is not None:
        return before
    if not names or not shared.any():
        spans = f"{references.dates[0]} to {references.dates[-1]} for {panel.dates[0]} to {panel.dates[-1]}"
        got = f"the symbols {summarize_names(references.symbols)}" if shared.any() else spans
        raise DataError(f"references: expected further symbols on dates of the panel; got {got}")
    others = references.select(names)
    values = others.values.plain()[torch.from_numpy(rows)].where(torch.from_numpy(shared)[:, None], torch.nan)
    units, provenance = others.units, others.provenance
    if before is not None:
        values = torch.cat([before.values.plain(), values], 1)
        names, units, provenance = [*before.symbols, *names], before.units + units, before.provenance + provenance
    return type(panel)(MetadataTensor(values), panel.dates, tuple(names), units, provenance)
