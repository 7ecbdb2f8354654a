"""Shared code of the publishers: series are fetched one at a time and joined into one panel."""

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import torch

from torchcommodity.data._core.errors import DataError, condense, make_finding
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._sources.assemble import assemble
from torchcommodity.data._sources.grid import Grid
from torchcommodity.opkit import MetadataTensor


def base_address(address: str | None, variable: str, default: str) -> str:
    """`address`, or that of the environment variable, or `default`; without a trailing slash."""
    return (address or os.environ.get(variable) or default).rstrip("/")


def parse_ids(ids: str | Iterable[str], publisher: str) -> list[str]:
    """Parse series ids; a repeated or malformed id is a `DataError`."""
    names = [name.strip() for name in (ids.split(",") if isinstance(ids, str) else ids)]
    invalid = [name for name in names if not re.fullmatch(r"[A-Za-z0-9_.\-]{1,100}", name)]
    if invalid or not names or len(set(names)) < len(names):
        raise DataError(
            f"{publisher}: expected distinct series ids, such as {publisher}:ID,ID; got {','.join(names)!r}"
        )
    return names


def series_panel(grid: Grid) -> Panel:
    """Build the panel of one series; days without a price (holidays) are dropped and counted in a finding."""
    empty = np.isnan(grid.values[:, 0])
    if empty.all():
        raise DataError(f"{grid.origin.label}: expected prices; got none in {len(empty)} {grid.origin.row_word}s")
    trading_days = replace(grid, days=grid.days[~empty], lines=grid.lines[~empty], values=grid.values[~empty])
    panel = assemble(trading_days)
    findings = [replace(finding, symbol=grid.symbols[0]) for finding in panel.findings]
    if empty.any():
        first = int(np.argmax(empty))
        day, line = grid.days[first], int(grid.lines[first])
        findings.append(make_finding("no trading", grid.symbols[0], day, line, "no price", int(empty.sum())))
    return replace(panel, findings=tuple(findings))


def join_series(names: list[str], fetch: Callable[[str], Panel]) -> Panel:
    """Join series on the days on which at least one has a price; NaN = missing."""
    parts = [fetch(name) for name in names]
    dates = np.unique(np.concatenate([part.dates for part in parts]))
    values = np.full((len(dates), len(parts)), np.nan)
    for column, part in enumerate(parts):
        values[np.searchsorted(dates, part.dates), column] = part.values.plain().numpy()[:, 0]
    return Panel(
        MetadataTensor(torch.from_numpy(values)),
        dates,
        tuple(names),
        tuple(part.units[0] for part in parts),
        tuple(part.provenance[0] for part in parts),
        findings=condense(finding for part in parts for finding in part.findings),
    )
