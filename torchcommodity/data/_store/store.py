"""`Store`: panels in one DuckDB file, with every state that they had; each change is one transaction."""

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchcommodity.data._core.errors import DataError, summarize_names
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._sources.files import store_path
from torchcommodity.data._store.connection import TABLES, check_file, transaction
from torchcommodity.data._store.rows import (
    AsOf,
    State,
    Vintage,
    append,
    format_time,
    last_state,
    parse_as_of,
    read_panel,
    read_states,
)

if TYPE_CHECKING:
    import pandas as pd
    from duckdb import DuckDBPyConnection

MAX_NAME = 1_000  # characters: a default name is the source, such as a query or many series of FRED
ENTRIES = """
SELECT name, v.known_from, v.rows,
    (SELECT list(symbol ORDER BY place) FROM columns c JOIN series s USING (panel, series)
        WHERE c.panel = v.panel AND c.vintage = v.columns),
    v.first::TEXT, v.last::TEXT,
    (SELECT count(*) FROM findings f WHERE f.panel = v.panel AND f.vintage = v.findings),
    v.vintage
FROM vintages v JOIN panels USING (panel)
QUALIFY row_number() OVER (PARTITION BY v.panel ORDER BY v.vintage DESC) = 1
ORDER BY v.number
"""
REVISIONS = """
SELECT known_from, o.vintage, symbol, date, nth, lag(price) OVER cell AS old, price AS new
FROM observations o JOIN series USING (panel, series) JOIN vintages v USING (panel, vintage)
WHERE o.panel = ? AND nth >= 0 AND (?::TEXT IS NULL OR symbol = ?)
WINDOW cell AS (PARTITION BY o.series, nth, date ORDER BY o.vintage)
QUALIFY row_number() OVER cell > 1
ORDER BY o.vintage, o.series, date, nth
"""

OBSERVATIONS = """
SELECT date, known_from AS published, symbol, price AS value
FROM observations o JOIN series USING (panel, series) JOIN vintages v USING (panel, vintage)
WHERE o.panel = ? AND nth = 0
ORDER BY known_from, o.series, date
"""


class StoreEntry(NamedTuple):
    """A stored panel as listed by `Store.list()`, as of its last vintage.

    Args:
        name: its name.
        added: time of the last vintage, ISO 8601 in UTC.
        rows: number of dates.
        symbols: its symbols.
        first: first date, ISO.
        last: last date, ISO.
        findings: number of findings.
        vintages: number of vintages.
    """

    name: str
    added: str
    rows: int
    symbols: tuple[str, ...]
    first: str
    last: str
    findings: int
    vintages: int


class Store:
    """Panels by name in one DuckDB file, with every state that they had: what was known when.

    `add` appends a vintage with the prices that are new, revised or withdrawn, and overwrites nothing, so that
    `load(as_of=)` returns the panel as it stood at any time. Every call opens the file, runs one transaction and closes
    the file; a failed call leaves it unchanged. A call waits up to a minute for another process that holds the file.

    Args:
        path: the file, created by the first `add`; default: `store_path()`.

    Raises:
        DataError: the file cannot be opened, is not a DuckDB store or is held by another process; an unknown name.

    >>> from datetime import datetime
    >>> from torchcommodity.data import embedded
    >>> wti = embedded(["WTI"]).between("2018-06-18", "2018-06-29")
    >>> store = Store(getfixture("tmp_path") / "prices.duckdb")
    >>> store.add(wti.between(last="2018-06-22"), "wti", known_from=datetime(2018, 6, 23)).new
    5
    >>> store.add(wti, "wti", known_from=datetime(2018, 6, 30)).new
    5
    >>> store.load("wti", as_of="2018-06-29")
    Panel(5 dates 2018-06-18 to 2018-06-22, 1 symbol: WTI)
    >>> store.load("wti").equals(wti)
    True
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = Path(path) if path is not None else store_path()

    def add(self, panel: Panel, name: str, *, known_from: datetime | None = None) -> Vintage:
        """Append what is new or revised in a panel, with its metadata and findings, as a vintage of a name.

        Its references are not stored; see `add_references`.

        Prices that the stored panel has and this one has not are recorded as withdrawn. A panel that differs from the
        last vintage in the time of retrieval at most adds nothing: the last vintage is returned, with the counts 0.

        Args:
            panel: the whole panel, not only its new rows.
            name: a printable name of at most 1,000 characters.
            known_from: when the panel was known, for archives; default: now. A time without a zone is UTC.

        Raises:
            DataError: a blank, unprintable or longer name; `known_from` in the future, or not after the last vintage.
        """
        return self._append(name, panel, known_from)

    def amend(self, name: str, change: Callable[[Panel | None], Panel]) -> Vintage:
        """Append the panel that `change` makes of the last vintage (None: the name is new), in one transaction.

        Unlike `load` and then `add`, this does not withdraw what another process adds in between.
        """
        return self._append(name, change)

    def _append(
        self, name: str, panel: Panel | Callable[[Panel | None], Panel], known_from: datetime | None = None
    ) -> Vintage:
        if not name.strip() or not name.isprintable() or len(name) > MAX_NAME:
            raise DataError(
                f"{self.path}: expected a printable name of at most {MAX_NAME:,} characters for the panel; "
                f"got {repr(name)[:80]}; choose another (--name)"
            )
        with transaction(self.path, write=True) as connection:
            return append(connection, name, panel, known_from).describe()

    def load(self, name: str | None = None, as_of: AsOf | None = None) -> Panel:
        """Load a panel, bit for bit as it was added, with its findings.

        Args:
            name: default: the panel added last.
            as_of: load the panel as it stood at this time. A date means the end of that day; a time without a zone is
                UTC. Default: the last vintage.

        Raises:
            DataError: an unknown name, or a time before the first vintage.
        """
        self._check_file(name)
        with transaction(self.path) as connection:
            state = self._state(connection, name, as_of)
            return replace(read_panel(connection, state), read_as=state.phrase())

    def vintages(self, name: str) -> "list[Vintage]":
        """List the vintages of a panel, oldest first."""
        self._check_file(name)
        with transaction(self.path) as connection:
            self._state(connection, name)
            return [state.describe() for state in read_states(connection, name)]

    def revisions(self, name: str, symbol: str | None = None) -> "pd.DataFrame":
        """Table of the prices that changed after they were first stored, in the order in which that became known.

        Columns: `known_from` (UTC), `vintage`, `symbol`, `date`, `nth` (0 = the price, n = the nth close of the curve),
        `old` and `new`; NaN = withdrawn.

        Raises:
            DataError: an unknown name or symbol.
        """
        self._check_file(name)
        with transaction(self.path) as connection:
            state = self._state(connection, name)
            symbols = connection.execute("SELECT symbol FROM series WHERE panel = ?", [state.panel]).fetchall()
            if symbol is not None and (symbol,) not in symbols:
                known = summarize_names((row[0] for row in symbols), limit=20)
                raise DataError(f"revisions: expected a symbol of {name!r} ({known}); got {symbol!r}")
            return connection.execute(REVISIONS, [state.panel, symbol, symbol]).df()

    def observations(self, name: str) -> "pd.DataFrame":
        """Every price of a panel with the time from which it was known: a table of vintages, for `to_covariates`.

        Columns: `date`, `published` (UTC), `symbol` and `value`, a row for each new, revised or withdrawn (NaN) price.

        Raises:
            DataError: an unknown name.
        """
        self._check_file(name)
        with transaction(self.path) as connection:
            state = self._state(connection, name)
            return connection.execute(OBSERVATIONS, [state.panel]).df()

    def list(self) -> "list[StoreEntry]":
        """List the stored panels in the order in which they were added; empty if there is no file."""
        if not check_file(self.path):
            return []
        with transaction(self.path) as connection:
            rows = connection.execute(ENTRIES).fetchall()
        return [
            StoreEntry(name, format_time(time), rows, tuple(symbols), *rest)
            for name, time, rows, symbols, *rest in rows
        ]

    def remove(self, name: str) -> None:
        """Delete a panel with all its vintages: the one call that loses what was known."""
        self._check_file(name)
        with transaction(self.path, write=True) as connection:
            state = self._state(connection, name)
            for table in TABLES:
                connection.execute(f"DELETE FROM {table} WHERE panel = ?", [state.panel])

    def _check_file(self, name: str | None) -> None:
        if not check_file(self.path):
            raise _unknown(self.path, [], name)

    def _state(self, connection: "DuckDBPyConnection", name: str | None, as_of: AsOf | None = None) -> State:
        """The last vintage of a name, or of any, by a time; a `DataError` if there is none."""
        state = last_state(connection, name, None if as_of is None else parse_as_of(as_of))
        if state is not None:
            return state
        if not (states := read_states(connection, name)):
            names = connection.execute("SELECT name FROM panels ORDER BY panel").fetchall()
            raise _unknown(self.path, [row[0] for row in names], name)
        first = min(states, key=lambda state: state.known_from)
        start = f"{format_time(first.known_from)}, the first vintage of {first.name!r}"
        raise DataError(f"{self.path}: expected an as_of time from {start}, on; got {as_of}")


def _unknown(path: Path, names: "list[str]", name: str | None) -> DataError:
    stored = summarize_names(names, limit=20) or "none yet"
    add = "" if names else "; add one: torchcommodity data add SOURCE --name NAME"
    return DataError(f"{path}: expected the name of a stored panel ({stored}); got {name!r}{add}")
