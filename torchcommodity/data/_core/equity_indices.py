"""Symbols that are named like equity indices: their drift is a premium, where that of a commodity is mostly chance."""

from collections.abc import Iterable

NAMES = """
    SPX SP500 GSPC INX NDX NASDAQ NASDAQ100 NASDAQCOM IXIC DJI DJIA RUT RUSSELL2000 DAX GDAXI CAC40 FCHI FTSE FTSE100
    UKX SX5E STOXX50 STOXX50E EUROSTOXX50 N225 NKY NIKKEI NIKKEI225 TOPIX HSI HANGSENG KOSPI ASX200 AXJO SENSEX NIFTY
    NIFTY50 IBOV BVSP MSCIWORLD
"""
INDICES = frozenset(NAMES.split())
FUTURES = frozenset({"ES=F", "NQ=F", "YM=F", "RTY=F"})  # Yahoo's symbols; the letters alone may be anything


def equity_indices(symbols: Iterable[str]) -> tuple[str, ...]:
    """The symbols that are named like equity indices, whatever their case and punctuation.

    >>> equity_indices(["WTI", "^GSPC", "S&P 500", "ES=F"])
    ('^GSPC', 'S&P 500', 'ES=F')
    """
    return tuple(s for s in symbols if s.upper() in FUTURES or "".join(filter(str.isalnum, s)).upper() in INDICES)
