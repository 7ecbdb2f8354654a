"""A panel as rows of the tables, and back: a vintage, which has a time, holds only what differs from the one before."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import astuple
from datetime import date, datetime, time, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from torch_opkit import MetadataTensor
from torchcommodity._extras import extra
from torchcommodity.data._core.errors import DataError, Finding
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.prices import Array
from torchcommodity.data._core.provenance import Provenance

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

    Connection = duckdb.DuckDBPyConnection

AsOf = str | date | np.datetime64  # a datetime is a date


def parse_as_of(as_of: AsOf) -> datetime:
    """A date means its end, 23:59:59.999999 UTC; a time without a zone is UTC. The result has no zone.

    >>> parse_as_of("2026-03-31"), parse_as_of("2026-03-31T10:00+02:00")
    (datetime.datetime(2026, 3, 31, 23, 59, 59, 999999), datetime.datetime(2026, 3, 31, 8, 0))
    """
    value: Any = as_of
    if isinstance(value, np.datetime64):  # an object of datetime, unless its unit is finer than microseconds
        unit = "D" if np.datetime_data(value)[0] in "YMWD" else "us"
        value = value.astype(f"datetime64[{unit}]").astype(object)
    if not isinstance(value, date):
        try:
            text = str(value)
            if "-" not in text[:5]:  # 20260331, which a later Python reads as the time at which that day begins
                raise ValueError
            is_day = len(text) == 10
            value = date.fromisoformat(text) if is_day else datetime.fromisoformat(text.replace("Z", "+00:00"))
        except ValueError:
            expected = "a date YYYY-MM-DD, or a time YYYY-MM-DDTHH:MM"
            raise DataError(f"as_of: expected {expected}; got {as_of!r}") from None
    if value != value:  # NaT of pandas, which is an object of datetime
        raise DataError(f"as_of: expected a date or time; got {as_of!r}")
    return to_utc(value) if isinstance(value, datetime) else datetime.combine(value, time.max)


def to_utc(moment: datetime) -> datetime:
    """The time in UTC, without a zone, which is how the store holds it."""
    return moment if moment.tzinfo is None else moment.astimezone(timezone.utc).replace(tzinfo=None)


def later_time(known_from: datetime | None, last: datetime | None) -> datetime:
    """The time of a new vintage: `known_from`, or now; always later than the last one, even if the clock was set back.

    Raises:
        DataError: `known_from` is not later than the last vintage, or is in the future.
    """
    now = datetime.now(timezone.utc).replace(tzinfo=None)
    earliest = datetime.min if last is None else last + timedelta(microseconds=1)
    if known_from is None:
        return max(now, earliest)
    if not earliest <= to_utc(known_from) <= now:
        bounds = f"after {format_time(last)} and not in the future" if last else "not in the future"
        raise DataError(f"known_from: expected a time {bounds}; got {known_from}; add vintages in the order of time")
    return to_utc(known_from)


def format_time(moment: datetime) -> str:
    """ISO 8601 in UTC, to the microsecond.

    >>> format_time(datetime(2026, 3, 31))
    '2026-03-31T00:00:00.000000Z'
    """
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Vintage(NamedTuple):
    """One state of a stored panel.

    Args:
        name: name of the panel.
        number: number of the vintage, from 1.
        known_from: from when on the panel stood so, ISO 8601 in UTC.
        rows: number of dates.
        first: first date, ISO.
        last: last date, ISO.
        new: prices, and closes of the curve, that the vintage before did not have.
        revised: those that it had with another value.
        withdrawn: those that only the vintage before had.
    """

    name: str
    number: int
    known_from: str
    rows: int
    first: str
    last: str
    new: int
    revised: int
    withdrawn: int


class State(NamedTuple):
    """Where the rows of a vintage are; `columns` and `findings` are the vintages that wrote them."""

    name: str
    panel: int
    vintage: int
    known_from: datetime
    rows: int
    first: date
    last: date
    curve: int | None
    deliveries: bool
    bars: bool
    digest: str
    columns: int
    findings: int
    new: int
    revised: int
    withdrawn: int

    def phrase(self) -> str:
        """Which vintage it is, for `Panel.read_as`."""
        return f"vintage {self.vintage} of {self.name!r}, known from {self.known_from:%Y-%m-%d %H:%M} UTC"

    def describe(self) -> Vintage:
        """The public record."""
        dates = (self.first.isoformat(), self.last.isoformat())
        counts = (self.new, self.revised, self.withdrawn)
        return Vintage(self.name, self.vintage, format_time(self.known_from), self.rows, *dates, *counts)


def read_states(connection: "duckdb.DuckDBPyConnection", name: str | None = None) -> list[State]:
    """The vintages of a name, or of all names, in the order in which they were added."""
    rows = connection.execute(
        f"SELECT {', '.join(State._fields)} FROM vintages JOIN panels USING (panel) "
        "WHERE ?::TEXT IS NULL OR name = ? ORDER BY number",
        [name, name],
    ).fetchall()
    return [State(*row) for row in rows]


def last_state(
    connection: "duckdb.DuckDBPyConnection", name: str | None = None, known_by: datetime | None = None
) -> State | None:
    """The last vintage of a name, or of all names, that was known by a time; None if there is none."""
    row = connection.execute(
        f"SELECT {', '.join(State._fields)} FROM vintages JOIN panels USING (panel) "
        "WHERE (?::TEXT IS NULL OR name = ?) AND known_from <= coalesce(?, 'infinity'::TIMESTAMP) "
        "ORDER BY number DESC LIMIT 1",
        [name, name, known_by],
    ).fetchone()
    return None if row is None else State(*row)


DELIVERY = -1  # nth of the month of delivery; as an index, the end of the last axis
BARS = slice(-4, -1)  # likewise of open, high and low, if there are bars


class Changes(NamedTuple):
    """Observations that differ between two panels, and how many are new, revised and withdrawn.

    `frame` has the columns series, nth, date and price (NaN = withdrawn) of the table `observations`.
    """

    frame: "pd.DataFrame"
    new: int
    revised: int
    withdrawn: int


def diff(old: Panel | None, new: Panel, series: Mapping[str, int]) -> Changes:
    """Compare two panels bit by bit; `series` numbers their symbols from 1, `old` None = nothing is stored."""
    with extra("forecast"):
        import pandas as pd

    dates = new.dates if old is None else np.union1d(old.dates, new.dates)
    panels = [panel for panel in (old, new) if panel is not None]
    width = max(0 if panel.curve is None else panel.curve.shape[2] for panel in panels)
    depths = _depths(width, any(panel.bars is not None for panel in panels))
    after = _cube(new, dates, series, depths)
    before = np.full_like(after, np.nan) if old is None else _cube(old, dates, series, depths)
    row, column, depth = cells = np.nonzero(after.view(np.int64) != before.view(np.int64))  # 0.0 and -0.0 differ
    price, is_new = after[cells], np.isnan(before[cells])
    nth = np.where(depth > width, depth - depths, depth)
    is_price, is_withdrawn = (column > 0) & (nth >= 0), np.isnan(price)
    frame = pd.DataFrame({"series": column, "nth": nth, "date": dates[row].astype("datetime64[s]"), "price": price})
    counts = [int((is_price & mask).sum()) for mask in (is_new, ~is_new & ~is_withdrawn, is_withdrawn)]
    return Changes(frame, *counts)


def digest(panel: Panel) -> str:
    """A checksum of rows, symbols, prices, curve and bars; not of the metadata."""
    checksum = hashlib.blake2b(repr(panel.symbols).encode(), digest_size=16)
    checksum.update(panel.dates.astype(np.int64).tobytes())
    checksum.update(_canonical(panel.values).tobytes())
    if panel.curve is not None:
        checksum.update(repr(tuple(panel.curve.shape)).encode())
        checksum.update(_canonical(panel.curve).tobytes())
    if panel.deliveries is not None:
        checksum.update(panel.deliveries.astype(np.int64).tobytes())
    if panel.bars is not None:
        checksum.update(_canonical(panel.bars).tobytes())
    return checksum.hexdigest()


def column_rows(panel: Panel) -> list[tuple[Any, ...]]:
    """Symbol, unit, contract, provenance and settings of each column, as in the table `columns`."""
    records = zip(panel.symbols, panel.units, panel.contracts, panel.provenance, panel.settings)
    return [
        (symbol, unit, code, *astuple(record), json.dumps(settings)) for symbol, unit, code, record, settings in records
    ]


def finding_rows(panel: Panel) -> list[tuple[Any, ...]]:
    """The findings, as in the table `findings`."""
    return [astuple(finding) for finding in panel.findings]


def read_columns(connection: "duckdb.DuckDBPyConnection", state: State) -> list[tuple[Any, ...]]:
    """What `column_rows` returned for a vintage, each after the number of its series."""
    return connection.execute(
        "SELECT c.series, s.symbol, unit, contract, publisher, location, license, retrieved, sha256, source, credit, "
        "settings FROM columns c JOIN series s USING (panel, series) WHERE c.panel = ? AND c.vintage = ? "
        "ORDER BY place",
        [state.panel, state.columns],
    ).fetchall()


def read_findings(connection: "duckdb.DuckDBPyConnection", state: State) -> list[tuple[Any, ...]]:
    """What `finding_rows` returned for a vintage."""
    return connection.execute(
        "SELECT kind, symbol, date, line, value, treatment, count FROM findings WHERE panel = ? AND vintage = ? "
        "ORDER BY place",
        [state.panel, state.findings],
    ).fetchall()


def read_panel(connection: "duckdb.DuckDBPyConnection", state: State) -> Panel:
    """The panel of a vintage."""
    series, symbols, units, contracts, *records, settings = zip(*read_columns(connection, state))
    width = state.curve or 0
    cells: dict[str, Any] = connection.execute(
        "SELECT series, nth, date, price FROM observations "
        "WHERE panel = ? AND vintage <= ? AND series <= ? AND nth BETWEEN ? AND ? ORDER BY vintage",
        [state.panel, state.vintage, max(series), BARS.start if state.bars else DELIVERY, width],
    ).fetchnumpy()
    days = cells["date"].astype("datetime64[D]")
    dates = np.unique(days)
    depths = _depths(width, state.bars)
    cube = np.full((len(dates), 1 + max(series), depths), np.nan)  # the observations, see `_cube`
    # of several values for one cell, NumPy assigns the last: that of the latest vintage
    cube[np.searchsorted(dates, days), cells["series"], cells["nth"]] = np.ma.filled(cells["price"], np.nan)
    rows = ~np.isnan(cube[:, 0, 0])
    dates, cube = dates[rows], cube[rows][:, series]
    months = np.where(np.isnan(cube[:, :, DELIVERY]), np.iinfo(np.int64).min, cube[:, :, DELIVERY]).astype(np.int64)
    panel = Panel(
        _tensor(cube[:, :, 0]),
        dates,
        symbols,
        units,
        tuple(Provenance(*record) for record in zip(*records)),
        contracts,
        None if state.curve is None else _tensor(cube[:, :, 1 : 1 + width]),
        tuple(Finding(*row) for row in read_findings(connection, state)),
        months.astype("datetime64[M]") if state.deliveries else None,
        bars=_tensor(cube[:, :, BARS]) if state.bars else None,
    )
    return panel.with_settings(map(json.loads, settings))


def _tensor(values: Array) -> MetadataTensor:
    return MetadataTensor(torch.from_numpy(np.ascontiguousarray(values)))


def _depths(width: int, has_bars: bool) -> int:
    """Number of observations of a symbol on a row: the price, the closes of the curve, the bars, the delivery."""
    return 2 + width + 3 * has_bars


def _cube(panel: Panel, dates: Array, series: Mapping[str, int], depths: int) -> Array:
    """Observations `(dates, 1 + series, depths)`: `nth` is the index in the last axis, from its end where negative."""
    cube = np.full((len(dates), 1 + len(series), depths), np.nan)
    rows, columns = np.searchsorted(dates, panel.dates), [series[symbol] for symbol in panel.symbols]
    cube[rows, 0, 0] = 0.0
    cube[rows[:, None], columns, 0] = _canonical(panel.values)
    if panel.curve is not None:
        cube[rows[:, None], columns, 1 : 1 + panel.curve.shape[2]] = _canonical(panel.curve)
    if panel.deliveries is not None:
        months = panel.deliveries.astype(np.float64)
        cube[rows[:, None], columns, DELIVERY] = np.where(np.isnat(panel.deliveries), np.nan, months)
    if panel.bars is not None:
        cube[rows[:, None], columns, BARS] = _canonical(panel.bars)
    return cube


def _canonical(values: MetadataTensor) -> Array:
    """The numbers with one bit pattern for NaN."""
    numbers = np.array(values.plain().detach().numpy(), order="C")
    numbers[np.isnan(numbers)] = np.nan
    return numbers


RETRIEVED = 6  # place in `column_rows`


def append(
    connection: "Connection", name: str, change: Callable[[Panel | None], Panel] | Panel, known_from: datetime | None
) -> State:
    """Append a panel, or the one that `change` makes of the last vintage (None: the name is new), as a vintage."""
    last = last_state(connection, name)
    panel = change if isinstance(change, Panel) else change(None if last is None else read_panel(connection, last))
    if last is None:
        ((number,),) = connection.execute("SELECT coalesce(max(panel), 0) + 1 FROM panels").fetchall()
        connection.execute("INSERT INTO panels VALUES (?, ?)", [number, name])
    else:
        number = last.panel
    series = _add_series(connection, number, panel.symbols)
    changes = _changes(connection, last, panel, series)
    columns = None if last is None else [row[1:] for row in read_columns(connection, last)]
    findings = None if last is None else read_findings(connection, last)
    same_columns, same_findings = columns == column_rows(panel), findings == finding_rows(panel)
    checksum = digest(panel)  # also of a curve, deliveries or bars without any value, which have no rows
    if last and checksum == last.digest and same_findings and _sources(columns) == _sources(column_rows(panel)):
        return last._replace(new=0, revised=0, withdrawn=0)
    vintage = 1 if last is None else last.vintage + 1
    state = State(
        name,
        number,
        vintage,
        later_time(known_from, last and last.known_from),
        len(panel),
        panel.dates[0].item(),
        panel.dates[-1].item(),
        None if panel.curve is None else panel.curve.shape[2],
        panel.deliveries is not None,
        panel.bars is not None,
        checksum,
        last.columns if last and same_columns else vintage,
        last.findings if last and same_findings else vintage,
        changes.new,
        changes.revised,
        changes.withdrawn,
    )
    _insert_vintage(connection, state, panel, changes, series)
    return state


def _sources(columns: list[tuple[Any, ...]] | None) -> list[tuple[Any, ...]]:
    """Columns without the time of retrieval: the same bytes read again are nothing new."""
    return [row[:RETRIEVED] + row[RETRIEVED + 1 :] for row in columns or ()]


def _changes(connection: "Connection", last: State | None, panel: Panel, series: dict[str, int]) -> Changes:
    """Compare with the last vintage; if its checksum says that none of its rows differ, only the rows after it."""
    if last is None:
        return diff(None, panel, series)
    end = np.datetime64(last.last, "D")
    head = panel.between(last=end) if panel.dates[0] <= end < panel.dates[-1] else panel
    if digest(head) != last.digest:
        return diff(read_panel(connection, last), panel, series)
    return (
        diff(head, head, series) if head is panel else diff(None, panel.between(end + np.timedelta64(1, "D")), series)
    )


def _add_series(connection: "Connection", panel: int, symbols: tuple[str, ...]) -> dict[str, int]:
    """Numbers of the series of all symbols that the panel ever had, from 1."""
    rows = connection.execute("SELECT symbol, series FROM series WHERE panel = ?", [panel]).fetchall()
    series = dict(rows)
    added = [symbol for symbol in symbols if symbol not in series]
    series |= {symbol: number for number, symbol in enumerate(added, len(series) + 1)}
    _insert(connection, "series", [panel], [(series[symbol], symbol) for symbol in added])
    return series


def _insert_vintage(
    connection: "Connection", state: State, panel: Panel, changes: Changes, series: dict[str, int]
) -> None:
    key = [state.panel, state.vintage]
    if state.columns == state.vintage:
        rows = [(place, series[row[0]], *row[1:]) for place, row in enumerate(column_rows(panel))]
        _insert(connection, "columns", key, rows)
    if state.findings == state.vintage:
        _insert(connection, "findings", key, [(place, *row) for place, row in enumerate(finding_rows(panel))])
    _insert(connection, "observations", key, changes.frame)
    fields = state._asdict()
    del fields["name"]
    connection.execute(
        f"INSERT INTO vintages (number, {', '.join(fields)}) "
        f"SELECT coalesce(max(number), 0) + 1, {', '.join('?' * len(fields))} FROM vintages",
        [*fields.values()],
    )


def _insert(connection: "Connection", table: str, key: list[int], rows: "list[Any] | pd.DataFrame") -> None:
    """Insert rows, with the same first cells `key`."""
    with extra("forecast"):
        import pandas as pd

    frame = pd.DataFrame(rows)
    if len(frame):
        connection.register("rows_to_add", frame)
        connection.execute(f"INSERT INTO {table} SELECT {', '.join('?' * len(key))}, * FROM rows_to_add", key)
        connection.unregister("rows_to_add")
