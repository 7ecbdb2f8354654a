"""The state of a stored panel: a row of the table `vintages`."""

from datetime import date, datetime
from typing import TYPE_CHECKING, NamedTuple

from torchcommodity.data._store.times import format_time

if TYPE_CHECKING:
    import duckdb


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
