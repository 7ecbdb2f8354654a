"""What the publishers over HTTP have in common: one series at a time, joined into one panel."""

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import torch

from torchcommodity.data._assemble import assemble
from torchcommodity.data._errors import DataError, condense, found
from torchcommodity.data._grid import Grid, Origin
from torchcommodity.data._panel import Panel
from torchcommodity.opkit import MetadataTensor


def base_address(given: str | None, variable: str, default: str) -> str:
    """The address given, else of the environment variable, else the publisher's; without a slash at the end."""
    return (given or os.environ.get(variable) or default).rstrip("/")


def series_names(ids: str | Iterable[str], publisher: str) -> list[str]:
    """The ids asked for, each a plain name and once, else a `DataError`."""
    names = [name.strip() for name in (ids.split(",") if isinstance(ids, str) else ids)]
    wrong = [name for name in names if not re.fullmatch(r"[A-Za-z0-9_.\-]{1,100}", name)]
    if wrong or not names or len(set(names)) < len(names):
        raise DataError(
            f"{publisher}: expected distinct series ids, such as {publisher}:ID,ID; got {','.join(names)!r}"
        )
    return names


def one_series(grid: Grid, origin: Origin) -> Panel:
    """The panel of one series. Days that the publisher lists without a price (holidays) are left out and counted."""
    empty = np.isnan(grid.values[:, 0])
    if empty.all():
        raise DataError(f"{origin.place}: expected prices; got none in {len(empty)} {origin.row_word}s")
    kept = replace(grid, days=grid.days[~empty], lines=grid.lines[~empty], values=grid.values[~empty])
    panel = assemble(kept, origin)
    findings = [replace(finding, symbol=grid.symbols[0]) for finding in panel.findings]
    if empty.any():
        first = int(np.argmax(empty))
        day, line = grid.days[first], int(grid.lines[first])
        findings.append(found("no trading", grid.symbols[0], day, line, "no price", int(empty.sum())))
    return replace(panel, findings=tuple(findings))


def joined(names: list[str], fetch: Callable[[str], Panel]) -> Panel:
    """All series on the days on which at least one has a price; where another has none, NaN = missing."""
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
