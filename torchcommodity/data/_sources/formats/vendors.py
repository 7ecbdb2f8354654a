"""The table of formats. The first that matches the columns counts; the three last are of no vendor."""

from torchcommodity.data._core.errors import DataError
from torchcommodity.data._sources.formats.format import Format


def _columns(*names: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(text.split(",")) for text in names)


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
