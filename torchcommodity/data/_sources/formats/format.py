"""`Format`: one vendor's layout as a record; `ReadOptions`: what the caller says about a source."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Decimal = Literal[".", ","]
Adjustment = Literal["none", "panama", "ratio"]
DateOrder = Literal["ymd", "dmy", "mdy"]


@dataclass(frozen=True)
class ReadOptions:
    """What the caller says about a source; None = decided from the source.

    Args:
        format: name of a `Format`.
        column: name of the price column.
        decimal: the decimal mark.
        date_order: order of year, month and day in dates such as 03/04/2020.
        roll: the roll rule of a table by contract.
        adjustment: its back-adjustment.
        contracts: product codes of its symbols.
    """

    format: str | None = None
    column: str | None = None
    decimal: Decimal | None = None
    date_order: DateOrder | None = None
    roll: str | None = None
    adjustment: Adjustment | None = None
    contracts: Mapping[str, str | None] | None = None


@dataclass(frozen=True)
class Format:
    """A layout of files and frames.

    Args:
        name: as in `--format`.
        title: vendor and tool.
        header: columns as the vendor writes them, for the documentation.
        columns: detected where all columns of one of these sets are there, by their `key`; none = only by name.
        exact: and no others.
        prices: keys of its price column, by preference; default: those that all layouts share.
        date: key of its date column, where several hold dates.
        symbol: key of its symbol column, where the name does not tell.
        file_name: pattern of the vendor's file names; group 1 is the symbol.
        date_order: of its dates.
        last_of_day: several rows of one day are snapshots, of which the last is the price.
    """

    name: str
    title: str
    header: str
    columns: tuple[frozenset[str], ...] = ()
    exact: bool = False
    prices: tuple[str, ...] = ()
    date: str | None = None
    symbol: str | None = None
    file_name: str = ""
    date_order: DateOrder | None = None
    last_of_day: bool = False

    def matches(self, keys: frozenset[str]) -> bool:
        """Whether a table with these keys is in this layout."""
        return any(keys == columns if self.exact else keys >= columns for columns in self.columns)
