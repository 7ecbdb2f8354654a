"""Tables of a store. All are append-only: a row holds from its vintage on, until a later row of the same cell."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

FORMAT = 2

# observations: series 0 marks the rows of the panel; nth 0 is the price, nth 1, 2, ... are the closes of its curve, and
# nth -1 is the month of delivery, counted from January 1970; NULL = withdrawn. columns and findings are written as a
# whole when they change: vintages.columns and vintages.findings name the vintage that wrote them. vintages.number
# counts the vintages of all panels; vintages.curve is the number of closes, NULL without a curve.
TABLES = {
    "panels": "panel INTEGER, name TEXT",
    "vintages": "panel INTEGER, vintage INTEGER, number BIGINT, known_from TIMESTAMP, rows BIGINT, first DATE, "
    "last DATE, curve INTEGER, deliveries BOOLEAN, digest TEXT, columns INTEGER, findings INTEGER, new BIGINT, "
    "revised BIGINT, withdrawn BIGINT",
    "series": "panel INTEGER, series INTEGER, symbol TEXT",
    "columns": "panel INTEGER, vintage INTEGER, place INTEGER, series INTEGER, unit TEXT, contract TEXT, "
    "publisher TEXT, location TEXT, license TEXT, retrieved TEXT, sha256 TEXT, source TEXT, credit TEXT",
    "observations": "panel INTEGER, vintage INTEGER, series INTEGER, nth INTEGER, date DATE, price DOUBLE",
    "findings": "panel INTEGER, vintage INTEGER, place INTEGER, kind TEXT, symbol TEXT, date TEXT, line BIGINT, "
    "value TEXT, treatment TEXT, count BIGINT",
}


def create_tables(connection: "duckdb.DuckDBPyConnection") -> None:
    """Create the tables of an empty store."""
    connection.execute("CREATE TABLE store_format (version INTEGER)")
    connection.execute("INSERT INTO store_format VALUES (?)", [FORMAT])
    for name, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {name} ({columns})")
