"""pysystemtrade's `multiple_prices`: the price, the forward and the carry, each with its contract."""

from dataclasses import replace

import numpy as np
import torch

from torchcommodity.data._core.arrays import Array, Dates, Months
from torchcommodity.data._core.contract_codes import delivery_months, parse_contract
from torchcommodity.data._core.errors import DataError, Finding, condense, ignored_columns, make_finding
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.provenance import Provenance
from torchcommodity.data._quality.inspect import inspect
from torchcommodity.data._sources.columns.column import Column
from torchcommodity.data._sources.formats.names import key
from torchcommodity.data._sources.tables.table import Table
from torchcommodity.opkit import MetadataTensor

COLUMNS = frozenset({"price", "price contract", "forward", "forward contract"})


def is_multiple_prices(table: Table) -> bool:
    """Whether a table has the columns of `multiple_prices`."""
    return {key(name) for name in table.names} >= COLUMNS


def multiple_prices(table: Table, symbol: str) -> Panel:
    """The panel of the price, with its delivery months and a curve of two contracts: the price and the forward.

    The forward is the contract into which the price rolls. Of several rows on one day, the last with a price counts.

    Raises:
        DataError: a cell that cannot be read, or a price that returns to an earlier contract.
    """
    columns = {key(column.name): column for column in table.columns}
    date = next((column for name, column in columns.items() if name in ("datetime", "date", "index", "")), None)
    if date is None:
        raise DataError(f"{table.header}: expected a column DATETIME; got {', '.join(table.names)}")
    times = table.times(date)
    prices = table.prices([columns["price"], columns["forward"]])
    rows = _last_of_day(times, prices[:, 0])
    if not rows.size:
        raise DataError(f"{table.origin.label}: expected prices; got only missing ones in {len(table)} rows")
    dates = times[rows].astype("datetime64[D]")
    held, following = (_months(columns[name], table, dates, rows) for name in ("price contract", "forward contract"))
    curve = prices[rows]
    other = np.flatnonzero((held[1:] != held[:-1]) & (held[1:] != following[:-1]))
    curve[other, 1] = np.nan
    origin = table.origin
    record = Provenance(
        origin.publisher, origin.location or origin.label, origin.license, origin.retrieved, origin.sha256, symbol
    )
    panel = Panel(
        MetadataTensor(torch.from_numpy(curve[:, :1].copy())),
        dates,
        (symbol,),
        ("",),
        (record,),
        curve=MetadataTensor(torch.from_numpy(curve[:, None])),
        deliveries=held[:, None],
        read_as="pysystemtrade, PRICE with its contract, 1 symbol",
    )
    findings = [*table.findings, *_findings(table, symbol, dates, other, held)]
    return replace(panel, findings=condense([*findings, *inspect(panel)]))


def _last_of_day(times: Array, prices: Array) -> Array:
    """The last row with a price of each day, in the order of time."""
    order = np.argsort(times, kind="stable")
    order = order[~np.isnan(prices[order])]
    days = times[order].astype("datetime64[D]")
    rows: Array = order[np.append(np.diff(days) > np.timedelta64(0, "D"), True)] if order.size else order
    return rows


def _months(column: Column, table: Table, dates: Dates, rows: Array) -> Months:
    """Delivery months of contracts such as 20240200, NaT = missing."""
    texts = [text.removesuffix(".0") for text in np.array(table.texts(column), dtype=object)[rows]]
    months = np.full(len(rows), np.datetime64("NaT", "M"), dtype="datetime64[M]")
    known = [row for row, text in enumerate(texts) if text and text.lower() != "nan"]
    codes = []
    for row in known:
        try:
            codes.append(parse_contract(texts[row]))
        except ValueError as error:
            raise DataError(f"{table.at(rows[row])}: {column.name!r}: expected {error}") from None
    if known:
        months[known] = delivery_months([code for code in codes if code is not None], dates[known])
    return months


def _findings(table: Table, symbol: str, dates: Dates, other: Array, held: Months) -> list[Finding]:
    carry = (name for name in table.names if key(name).startswith("carry"))
    findings = list(ignored_columns(carry, symbol, line=0))
    if other.size:
        value = f"the price rolled into {held[other[0] + 1]}, which was not the forward"
        findings.append(make_finding("other forward", symbol, dates[other[0] + 1], value=value, count=len(other)))
    return findings
