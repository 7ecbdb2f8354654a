"""`Format`: the layout of a vendor as a record, and the table of all; `ReadOptions`: what the caller says."""

from collections.abc import Mapping
from dataclasses import dataclass

from torchcommodity._choices import Adjustment, DateOrder, DecimalMark
from torchcommodity.data._core.errors import DataError


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
    decimal: DecimalMark | None = None
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


def _columns(*names: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(text.split(",")) for text in names)


# The first that matches the columns counts; the three last are of no vendor.
FORMATS = (
    Format(
        "yfinance", "Yahoo Finance through yfinance", "Price,Close,High,Low,Open,Volume / Ticker,CL=F,… / Date,,…",
        _columns("date,open,high,low,close,adj close", "date,open,high,low,close,dividends"),
        prices=("close",),
    ),
    Format(
        "databento", "Databento, schema ohlcv-1d", "ts_event,rtype,publisher_id,instrument_id,open,…,volume,symbol",
        _columns("ts event,open,high,low,close", "instrument id,publisher id,open,high,low,close"),
        prices=("close",), date="ts event",
    ),
    Format("contracts", "prices by contract, joined to the front month", "date,contract,settle,volume,open_interest"),
    Format(
        "pysystemtrade", "pysystemtrade, multiple_prices", "DATETIME,CARRY,CARRY_CONTRACT,PRICE,PRICE_CONTRACT,…",
        _columns("price,price contract,carry,carry contract"),
        prices=("price",), last_of_day=True,
    ),
    Format(
        "pysystemtrade-adjusted", "pysystemtrade, adjusted_prices", "DATETIME,price",
        _columns("datetime,price"), exact=True, prices=("price",), last_of_day=True,
    ),
    Format(
        "stooq-bulk", "Stooq, daily ASCII database", "<TICKER>,<PER>,<DATE>,<TIME>,<OPEN>,…,<CLOSE>,<VOL>,<OPENINT>",
        _columns("ticker,per,date,open,high,low,close"),
        prices=("close",), date="date", symbol="ticker",
    ),
    Format(
        "nasdaq-data-link", "Nasdaq Data Link (Quandl)",
        "Date,Open,High,Low,Last,Change,Settle,Volume,Previous Day Open Interest",
        _columns("date,settle,previous day open interest", "date,open,high,low,settle,change"),
        prices=("settle",), file_name=r"(?:CHRIS[-_/])?(.+)",
    ),
    Format(
        "investing", "Investing.com, historical data", '"Date","Price","Open","High","Low","Vol.","Change %"',
        _columns("date,price,open,high,low,change %", "datum,zuletzt,hoch,tief"),
        prices=("price", "zuletzt"), file_name=r"(.+?)(?: Historical Data| Historische Daten)(?: ?\(\d+\))?",
    ),
    Format(
        "barchart", "Barchart, historical prices", "Time,Open,High,Low,Last,Change,%Chg,Volume",
        _columns("time,open,high,low,last", "time,open,high,low,latest", "tradingday,open,high,low,close"),
        prices=("last", "latest", "close"), date="tradingday", date_order="mdy",
        file_name=r"(\w+?)_.*(?:price-history|historical-data).*",
    ),
    Format(
        "norgate", "Norgate Data", "Date,Open,High,Low,Close,Volume,Open Interest,Delivery Month",
        _columns("date,open,high,low,close,volume,open interest"), prices=("close",),
    ),
    Format(
        "bloomberg", "Bloomberg, historical data of Excel", "Dates,PX_LAST (tickers above, for several)",
        _columns("dates,px last"), prices=("px settle", "px last"),
    ),
    Format(
        "refinitiv", "Refinitiv (LSEG), get_history", "Date,TRDPRC_1,HIGH_1,LOW_1,ACVOL_UNS,OPEN_PRC,SETTLE",
        _columns("trdprc 1,high 1,low 1"), prices=("settle", "trdprc 1"),
    ),
    Format(
        "eia-api", "EIA, API v2", "period,product,…,series,series-description,value,units",
        _columns("period,series,value,units"), prices=("value",), date="period", symbol="series",
    ),
    Format("nixtla", "Nixtla (statsforecast, neuralforecast)", "unique_id,ds,y", _columns("unique id,ds,y")),
    Format("fred", "FRED, St. Louis Fed", "observation_date,DCOILWTICO"),
    Format("stooq", "Stooq, one symbol", "Date,Open,High,Low,Close,Volume", file_name=r"([\^a-zA-Z0-9_.]+)_[dwm]"),
    Format("bars", "bars of one or more symbols", "date,open,high,low,close,volume"),
    Format("long", "a row for each date and symbol", "date,symbol,close"),
    Format("wide", "a column for each symbol", "date,WTI,BRENT"),
)  # fmt: skip
BY_NAME = {record.name: record for record in FORMATS}


def get_format(name: str) -> Format:
    """The format of a name.

    Raises:
        DataError: an unknown name; the message lists the known ones.

    >>> get_format("stooq").title
    'Stooq, one symbol'
    """
    if name not in BY_NAME:
        raise DataError(f"format: expected one of {', '.join(BY_NAME)}; got {name!r}")
    return BY_NAME[name]
