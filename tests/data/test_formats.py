"""`read` of files as vendors and tools write them: prices, symbols, and the phrase of `Panel.read_as`."""

import io
from typing import NamedTuple

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from torchcommodity import data


class Case(NamedTuple):
    """A file, its name, and what must come out: symbols, prices by row, `read_as`."""

    text: str
    name: str
    symbols: tuple[str, ...]
    prices: list[list[float]]
    read_as: str
    options: dict[str, str] | None = None
    first: str = "2024-01-02"


nan = np.nan
CASES = {
    "yfinance_0.2": Case(
        "Date,Open,High,Low,Close,Adj Close,Volume\n2024-01-02,71.7,73.6,70.1,70.38,70.38,293361\n"
        "2024-01-03,70.4,73.2,69.3,72.70,72.70,351912\n",
        "CL=F.csv", ("CL=F",), [[70.38], [72.7]], "yfinance, column Close, 1 symbol",
    ),
    "yfinance_history": Case(
        "Date,Open,High,Low,Close,Volume,Dividends,Stock Splits\n"
        "2024-01-02 00:00:00-05:00,71.7,73.6,70.1,70.38,293361,0.0,0.0\n"
        "2024-07-02 00:00:00-04:00,83.4,84.4,82.4,82.81,243361,0.0,0.0\n",
        "CL=F.csv", ("CL=F",), [[70.38], [82.81]], "yfinance, column Close, 1 symbol",
    ),
    "yfinance_1": Case(
        "Price,Close,High,Low,Open,Volume\nTicker,CL=F,CL=F,CL=F,CL=F,CL=F\nDate,,,,,\n"
        "2024-01-02,70.38,73.6,70.1,71.7,293361\n2024-01-03,72.7,73.2,69.3,70.4,351912\n",
        "download.csv", ("CL=F",), [[70.38], [72.7]], "yfinance, column Close, 1 symbol",
    ),
    "yfinance_1_tickers": Case(
        "Price,Close,Close,High,High,Low,Low,Open,Open,Volume,Volume\n"
        "Ticker,CL=F,GC=F,CL=F,GC=F,CL=F,GC=F,CL=F,GC=F,CL=F,GC=F\nDate,,,,,,,,,,\n"
        "2024-01-02,70.38,2064.4,73.6,2077.8,70.1,2055.0,71.7,2063.0,293361,45\n2024-01-03,72.7,,73.2,,69.3,,70.4,,351912,\n",
        "download.csv", ("CL=F", "GC=F"), [[70.38, 2064.4], [72.7, nan]], "yfinance, column Close, 2 symbols",
    ),
    "yfinance_by_ticker": Case(
        "Ticker,CL=F,CL=F,CL=F,CL=F,CL=F\nPrice,Open,High,Low,Close,Volume\nDate,,,,,\n"
        "2024-01-02,71.7,73.6,70.1,70.38,293361\n",
        "x.csv", ("CL=F",), [[70.38]], "yfinance, column Close, 1 symbol",
    ),
    "yfinance_0.2_tickers": Case(
        ",Adj Close,Adj Close,Close,Close,Volume,Volume\n,CL=F,GC=F,CL=F,GC=F,CL=F,GC=F\nDate,,,,,,\n"
        "2024-01-02,70.3,2064.3,70.38,2064.4,293361,45\n",
        "x.csv", ("CL=F", "GC=F"), [[70.38, 2064.4]], "yfinance, column Close, 2 symbols",
    ),
    "yfinance_adjusted": Case(
        "Date,Open,High,Low,Close,Adj Close,Volume\n2024-01-02,71.7,73.6,70.1,70.38,70.11,293361\n",
        "USO.csv", ("USO",), [[70.11]], "yfinance, column Adj Close, 1 symbol", {"column": "Adj Close"},
    ),
    "stooq": Case(
        "Date,Open,High,Low,Close,Volume\n2024-01-02,71.7,73.6,70.1,70.38,293361\n",
        "cl_f_d.csv", ("cl_f",), [[70.38]], "stooq, column Close, 1 symbol",
    ),
    "stooq_bulk": Case(
        "<TICKER>,<PER>,<DATE>,<TIME>,<OPEN>,<HIGH>,<LOW>,<CLOSE>,<VOL>,<OPENINT>\n"
        "CL.F,D,20240102,000000,71.7,73.6,70.1,70.38,293361,0\nCL.F,D,20240103,000000,70.4,73.2,69.3,72.7,351912,0\n",
        "cl.f.txt", ("CL.F",), [[70.38], [72.7]], "stooq-bulk, column <CLOSE>, 1 symbol",
    ),
    "norgate": Case(
        "Date,Open,High,Low,Close,Volume,Open Interest,Delivery Month\n"
        "20240102,71.7,73.6,70.1,70.38,293361,280001,202402\n20240103,70.4,73.2,69.3,72.7,351912,270001,202402\n",
        "&CL.csv", ("&CL",), [[70.38], [72.7]], "norgate, column Close, 1 symbol",
    ),
    "barchart": Case(
        'Time,Open,High,Low,Last,Change,%Chg,Volume,"Open Int"\n'
        '01/03/2024,70.4,73.2,69.3,72.7,2.32,+3.30%,351912,270001\n'
        '01/02/2024,71.7,73.6,70.1,70.38,-1.27,-1.77%,293361,280001\n'
        '"Downloaded from Barchart.com as of 01-04-2024 03:14pm CST"\n',
        "clg24_price-history-01-04-2024.csv", ("clg24",), [[70.38], [72.7]], "barchart, column Last, 1 symbol",
    ),
    "barchart_symbols": Case(
        "Symbol,Time,Open,High,Low,Last,Change,%Chg,Volume\nCLG24,2024-01-02,71.7,73.6,70.1,70.38,-1.27,-1.77%,293361\n"
        "NGG24,2024-01-02,2.5,2.6,2.5,2.568,0.05,2.1%,140000\n",
        "x.csv", ("CLG24", "NGG24"), [[70.38, 2.568]], "barchart, column Last, 2 symbols",
    ),
    "databento_iso": Case(
        "ts_event,rtype,publisher_id,instrument_id,open,high,low,close,volume,symbol\n"
        "2024-01-02T00:00:00.000000000Z,35,1,174031,71.700000000,73.600000000,70.100000000,70.380000000,293361,CLG4\n"
        "2024-01-02T00:00:00.000000000Z,35,1,174032,71.900000000,73.700000000,70.300000000,70.610000000,93361,CLH4\n",
        "glbx-mdp3-20240102.ohlcv-1d.csv", ("CL",), [[70.38]],
        "contracts, front month by expiry of 2 contracts, 1 symbol",
    ),
    "databento_raw": Case(
        "ts_event,rtype,publisher_id,instrument_id,open,high,low,close,volume,symbol\n"
        "1704153600000000000,35,1,174031,71700000000,73600000000,70100000000,70380000000,293361,CLG4\n"
        "1704240000000000000,35,1,174031,70400000000,73200000000,69300000000,9223372036854775807,351912,CLG4\n"
        "1704326400000000000,35,1,174031,70400000000,73200000000,69300000000,72190000000,351912,CLG4\n",
        "x.csv", ("CLG4",), [[70.38], [nan], [72.19]], "databento, column close, 1 symbol",
    ),
    "nasdaq_data_link": Case(
        "Date,Open,High,Low,Last,Change,Settle,Volume,Previous Day Open Interest\n"
        "2024-01-03,70.4,73.2,69.3,72.8,2.32,72.7,351912.0,270001.0\n2024-01-02,71.7,73.6,70.1,70.5,1.27,70.38,293361.0,280001.0\n",
        "CHRIS-CME_CL1.csv", ("CME_CL1",), [[70.38], [72.7]], "nasdaq-data-link, column Settle, 1 symbol",
    ),
    "investing": Case(
        '\ufeff"Date","Price","Open","High","Low","Vol.","Change %"\n'
        '"Jan 03, 2024","2,042.80","2,067.00","2,073.30","2,038.40","183.40K","-1.47%"\n'
        '"Jan 02, 2024","2,073.40","2,072.70","2,087.30","2,064.40","-","0.08%"\n',
        "Gold Futures Historical Data.csv", ("Gold Futures",), [[2073.4], [2042.8]],
        "investing, column Price, 1 symbol",
    ),
    "investing_de": Case(
        '"Datum","Zuletzt","Eröffn.","Hoch","Tief","Vol.","+/- %"\n'
        '"02.01.2024","2.073,40","2.072,70","2.087,30","2.064,40","183,40K","0,08%"\n',
        "Gold Historische Daten.csv", ("Gold",), [[2073.4]], "investing, column Zuletzt, 1 symbol",
    ),
    "fred": Case("observation_date,DCOILWTICO\n2024-01-01,.\n2024-01-02,70.62\n", "DCOILWTICO.csv",
                 ("DCOILWTICO",), [[nan], [70.62]], "fred, column DCOILWTICO, 1 symbol", first="2024-01-01"),
    "fred_old": Case("DATE,DCOILWTICO\n2024-01-02,70.62\n", "x.csv", ("DCOILWTICO",), [[70.62]],
                     "fred, column DCOILWTICO, 1 symbol"),
    "nixtla": Case("unique_id,ds,y\nWTI,2024-01-02,70.38\n", "x.csv", ("WTI",), [[70.38]],
                   "nixtla, column y, 1 symbol"),
    "pysystemtrade_multiple": Case(
        "DATETIME,CARRY,CARRY_CONTRACT,PRICE,PRICE_CONTRACT,FORWARD,FORWARD_CONTRACT\n"
        "2024-01-02 15:00:00,70.9,20240300,70.5,20240200,,20240400\n"
        "2024-01-02 23:00:00,70.8,20240300,70.38,20240200,,20240400\n",
        "CRUDE_W.csv", ("CRUDE_W",), [[70.38]], "pysystemtrade, PRICE with its contract, 1 symbol",
    ),
    "pysystemtrade_adjusted": Case(
        "DATETIME,price\n2024-01-02 23:00:00,70.38\n", "CRUDE_W.csv", ("CRUDE_W",), [[70.38]],
        "pysystemtrade-adjusted, column price, 1 symbol",
    ),
    "date_ticker_settle": Case("date,ticker,settle\n2024-01-02,CL,70.38\n", "x.csv", ("CL",), [[70.38]],
                               "long, column settle, 1 symbol"),
    "date_contract_settle": Case(
        "date,contract,settle,volume\n2024-01-02,CLG24,70.38,9\n2024-01-02,CLH24,70.61,8\n", "x.csv",
        ("CL",), [[70.38]], "contracts, front month by expiry of 2 contracts, 1 symbol",
    ),
    "german": Case("Datum;Schluss\n02.01.2024;70,38\n03.01.2024;72,7\n", "Rohöl.csv", ("Rohöl",), [[70.38], [72.7]],
                   "wide, column Schluss, 1 symbol"),
    "spanish": Case("Fecha,Cierre\n2024-01-02,70.38\n", "petroleo.csv", ("petroleo",), [[70.38]],
                    "wide, column Cierre, 1 symbol"),
    "french": Case("Date;Clôture\n02/01/2024;70,38\n31/01/2024;75,85\n", "petrole.csv", ("petrole",),
                   [[70.38], [75.85]], "wide, column Clôture, 1 symbol"),
    "pandas_index": Case(",WTI,BRENT\n2024-01-02,70.38,75.89\n", "x.csv", ("WTI", "BRENT"), [[70.38, 75.89]],
                         "wide, 2 symbols"),
    "pandas_row_numbers": Case(",Date,WTI\n0,2024-01-02,70.38\n1,2024-01-03,72.7\n", "x.csv", ("WTI",),
                               [[70.38], [72.7]], "wide, column WTI, 1 symbol"),
    "months": Case("month,COPPER\n2024-01,8344.1\n2024-02,8310.6\n", "x.csv", ("COPPER",), [[8344.1], [8310.6]],
                   "wide, column COPPER, 1 symbol", first="2024-01-31"),
    "world_bank_months": Case("date,COPPER\n2024M01,8344.1\n", "x.csv", ("COPPER",), [[8344.1]],
                              "wide, column COPPER, 1 symbol", first="2024-01-31"),
    "imf_months": Case("Period,POILWTI\n2024M1,74.2\n2024M10,71.6\n", "x.csv", ("POILWTI",), [[74.2], [71.6]],
                       "wide, column POILWTI, 1 symbol", first="2024-01-31"),
    "yyyymmdd": Case("date,WTI\n20240102,70.38\n", "x.csv", ("WTI",), [[70.38]], "wide, column WTI, 1 symbol"),
    "us_slashes": Case("date,WTI\n01/02/2024,70.38\n01/31/2024,75.85\n", "x.csv", ("WTI",), [[70.38], [75.85]],
                       "wide, column WTI, 1 symbol"),
    "us_stated": Case("date,WTI\n01/02/2024,70.38\n", "x.csv", ("WTI",), [[70.38]], "wide, column WTI, 1 symbol",
                      {"date_order": "mdy"}),
    "day_month_name": Case("date,WTI\n02-Jan-2024,70.38\n03-Jan-24,72.7\n", "x.csv", ("WTI",), [[70.38], [72.7]],
                           "wide, column WTI, 1 symbol"),
    "title_lines": Case("# EIA\nSource: EIA, Petroleum\nCushing, OK\n\ndate,WTI,BRENT\n2024-01-02,70.38,75.89\n",
                        "x.csv", ("WTI", "BRENT"), [[70.38, 75.89]], "wide, 2 symbols"),
    "flat_bars_of_symbols": Case(
        "Date,CL=F_Open,CL=F_High,CL=F_Low,CL=F_Close,GC=F_Open,GC=F_High,GC=F_Low,GC=F_Close\n2024-01-02,1,2,0.5,70.38,1,2,0.5,2064.4\n",
        "x.csv", ("CL=F", "GC=F"), [[70.38, 2064.4]], "yfinance, column Close, 2 symbols",
    ),
    "tuple_names": Case(
        "Date,\"('Close', 'CL=F')\",\"('Volume', 'CL=F')\"\n2024-01-02,70.38,293361\n", "x.csv", ("CL=F",), [[70.38]],
        "yfinance, column Close, 1 symbol",
    ),
    "wide_with_volume": Case("date,WTI,WTI volume\n2024-01-02,70.38,293361\n", "x.csv", ("WTI",), [[70.38]],
                             "wide, column WTI, 1 symbol"),
    "contract_numbers": Case("date,WTI,held\n2024-01-02,70.38,20240200\n2024-01-03,72.7,20240300\n", "x.csv",
                             ("WTI",), [[70.38], [72.7]], "wide, column WTI, 1 symbol"),
    "units_below": Case("Date,WTI,BRENT\n,$/bbl,$/bbl\n2024-01-02,70.38,75.89\n", "x.csv", ("WTI", "BRENT"),
                        [[70.38, 75.89]], "wide, 2 symbols"),
    "tradingview": Case("time,open,high,low,close,Volume\n1704153600,71.7,73.6,70.1,70.38,293361\n",
                        "NYMEX_CL1!, 1D.csv",
                        ("NYMEX_CL1!, 1D",), [[70.38]], "bars, column close, 1 symbol"),
    "unknown_long": Case("Datum;Rohstoff;Notierung\n02.01.2024;Öl;70,38\n02.01.2024;Gold;2.064,40\n", "x.csv",
                         ("Öl", "Gold"), [[70.38, 2064.4]], "long, column Notierung, 2 symbols"),
    "decimal_stated": Case('date,GOLD\n2024-01-02,"2,064"\n', "x.csv", ("GOLD",), [[2064]],
                           "wide, column GOLD, 1 symbol", {"decimal": "."}),
    "number_of_an_instrument": Case(
        "date,WTI,instrument_id,volume\n2024-01-02,70.38,118,293361\n2024-01-03,72.7,118,351912\n", "x.csv", ("WTI",),
        [[70.38], [72.7]], "wide, column WTI, 1 symbol",
    ),
    "features": Case(
        "date,WTI,sma20,RSI,log_ret,is_roll,days_to_expiry,Stock (kbbl)\n2024-01-02,70.38,71,55,.01,0,9,1\n",
        "x.csv", ("WTI",), [[70.38]], "wide, column WTI, 1 symbol",
    ),
    "stooq_polish": Case(
        "Data,Otwarcie,Najwyzszy,Najnizszy,Zamkniecie,Wolumen\n2024-01-02,71.7,73.6,70.1,70.38,293361\n",
        "cl_f_d.csv", ("cl_f",), [[70.38]], "stooq, column Zamkniecie, 1 symbol",
    ),
    "investing_french": Case(
        '"Date","Dernier","Ouv."," Plus Haut","Plus Bas","Vol.","Variation %"\n'
        '"31/01/2024","2.067,40","2.056,20","2.074,60","2.052,00","181,06K","+0,81%"\n'
        '"30/01/2024","2.050,90","2.052,50","2.067,40","2.047,50","164,61K","+0,32%"\n',
        "gold.csv", ("gold",), [[2050.9], [2067.4]], "bars, column Dernier, 1 symbol", first="2024-01-30",
    ),
    "refinitiv": Case(
        "Date,TRDPRC_1,HIGH_1,LOW_1,ACVOL_UNS,OPEN_PRC,SETTLE\n2024-01-02,70.4,73.6,70.1,293361,71.7,70.38\n",
        "CLc1.csv", ("CLc1",), [[70.38]], "refinitiv, column SETTLE, 1 symbol",
    ),
    "eia_api": Case(
        "period,duoarea,product,product-name,series,value,units\n2024-01-02,YCUOK,EPCWTI,WTI,RWTC,70.38,$/BBL\n",
        "x.csv", ("RWTC",), [[70.38]], "eia-api, column value, 1 symbol",
    ),
    "bloomberg_title": Case("Start Date,1/1/2024\nEnd Date,1/31/2024\n,\nDates,PX_LAST\n01/31/2024,75.85\n", "CL1.csv",
                            ("CL1",), [[75.85]], "bloomberg, column PX_LAST, 1 symbol", first="2024-01-31"),
    "bloomberg": Case(
        ",CL1 Comdty,CO1 Comdty\nDates,PX_LAST,PX_LAST\n01/30/2024,77.82,82.87\n01/31/2024,75.85,#N/A N/A\n", "x.csv",
        ("CL1 Comdty", "CO1 Comdty"), [[77.82, 82.87], [75.85, nan]], "bloomberg, column PX_LAST, 2 symbols",
        first="2024-01-30",
    ),
    "nasdaq": Case(
        "Date,Close/Last,Volume,Open,High,Low\n01/31/2024,$75.85,293361,$77.90,$78.10,$75.60\n", "CL.csv", ("CL",),
        [[75.85]], "bars, column Close/Last, 1 symbol", first="2024-01-31",
    ),
    "currency": Case("date;Gold\n2024-01-02;2.064,40 €\n2024-01-03;—\n2024-01-04;2.050,10 €\n", "x.csv", ("Gold",),
                     [[2064.4], [nan], [2050.1]], "wide, column Gold, 1 symbol"),
    "parentheses": Case("date,WTI\n2020-04-17,$18.27\n2020-04-20,($37.63)\n", "x.csv", ("WTI",), [[18.27], [-37.63]],
                        "wide, column WTI, 1 symbol", first="2020-04-17"),
    "german_months": Case("Datum;Kupfer\n31. Dezember 2019;6.156,00\n02. Mrz 2020;5.663,50\n", "x.csv", ("Kupfer",),
                          [[6156], [5663.5]], "wide, column Kupfer, 1 symbol", first="2019-12-31"),
    "french_months": Case("date;cuivre\n02 janv. 2024;8430,5\n01 août 2024;9023,0\n", "x.csv", ("cuivre",),
                          [[8430.5], [9023]], "wide, column cuivre, 1 symbol"),
    "japanese": Case("日付,始値,高値,安値,終値\n2024年1月2日,71.7,73.6,70.1,70.38\n", "CL.csv", ("CL",), [[70.38]],
                     "bars, column 終値, 1 symbol"),
    "float_seconds": Case("time,WTI\n1704153600.0,70.38\n", "x.csv", ("WTI",), [[70.38]], "wide, column WTI, 1 symbol"),
    "russian_months": Case("дата;медь\n2 янв 2024;8430,5\n5 мая 2024;9023,0\n", "x.csv", ("медь",),
                           [[8430.5], [9023]], "wide, column медь, 1 symbol"),
    "polish_months": Case("data;miedź\n2 stycznia 2024;8430,5\n5 października 2024;9023,0\n", "x.csv", ("miedź",),
                          [[8430.5], [9023]], "wide, column miedź, 1 symbol"),
    "bulgarian_year": Case("дата;мед\n02.01.2024 г.;8430,5\n13.02.2024 г.;9023,0\n", "x.csv", ("мед",),
                           [[8430.5], [9023]], "wide, column мед, 1 symbol"),
    "day_names": Case("date,WTI\nTue 02/01/2024,70.38\nThu 18/01/2024,74.08\n", "x.csv", ("WTI",),
                      [[70.38], [74.08]], "wide, column WTI, 1 symbol"),
    "bars_by_column": Case("date,symbol,open,high,low,close\n2024-01-02,A,1,3,0.5,2\n", "x.csv", ("A",), [[3]],
                           "bars, column high, 1 symbol", {"column": "high"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_read_detects_the_layouts_of_vendors(name, tmp_path):
    case = CASES[name]
    path = tmp_path / case.name
    path.write_text(case.text, encoding="utf-8")
    panel = data.read(path, **(case.options or {}))
    assert panel.symbols == case.symbols
    np.testing.assert_allclose(panel.values.numpy(), case.prices, rtol=1e-15)
    assert str(panel.dates[0]) == case.first
    assert panel.read_as == case.read_as


FIELDS = ["Close", "High", "Low", "Open", "Volume"]
DAYS = pd.DatetimeIndex(["2024-01-02", "2024-01-03"], name="Date")
TICKERS = pd.MultiIndex.from_product([FIELDS, ["CL=F", "GC=F"]], names=["Price", "Ticker"])
ROWS = [
    [70.38, 2064.4, 73.6, 2077.8, 70.1, 2055.0, 71.7, 2063.0, 293361, 45],
    [72.70, 2035.0, 73.2, 2060.0, 69.3, 2030.0, 70.4, 2059.0, 351912, 53],
]
DOWNLOAD = pd.DataFrame(ROWS, index=DAYS, columns=TICKERS)  # as yf.download returns it
TEXT = DOWNLOAD.to_csv()
FRAMES = {
    "download": DOWNLOAD,
    "by_ticker": DOWNLOAD.swaplevel(axis=1).sort_index(axis=1),
    "reset_index": DOWNLOAD.reset_index(),
    "time_zone": DOWNLOAD.tz_localize("America/New_York"),
    "names_as_text": DOWNLOAD.set_axis([str(label) for label in DOWNLOAD.columns], axis=1),
    "flat_names": DOWNLOAD.set_axis([f"{field}_{ticker}" for field, ticker in TICKERS], axis=1),
    "read_csv": pd.read_csv(io.StringIO(TEXT), header=[0, 1], index_col=0, parse_dates=True),
    "read_csv_as_text": pd.read_csv(io.StringIO(TEXT)),
    "stacked": DOWNLOAD.stack(level=1, future_stack=True),
    "long": DOWNLOAD.stack(level=1, future_stack=True).reset_index(),
    "polars": pl.from_pandas(DOWNLOAD.stack(level=1, future_stack=True).reset_index()),
    "arrow": pa.Table.from_pandas(DOWNLOAD.stack(level=1, future_stack=True).reset_index()),
}


@pytest.mark.parametrize("name", FRAMES)
def test_to_panel_takes_the_close_of_yfinance_frames(name):
    panel = data.to_panel(FRAMES[name])
    assert panel.symbols == ("CL=F", "GC=F")
    np.testing.assert_array_equal(panel.values.numpy(), DOWNLOAD["Close"].to_numpy())
    assert "column Close, 2 symbols" in panel.read_as


def test_to_panel_takes_another_field_by_column():
    panel = data.to_panel(DOWNLOAD, column="High")
    np.testing.assert_array_equal(panel.values.numpy(), DOWNLOAD["High"].to_numpy())


def test_to_panel_takes_a_relation_of_a_table_or_of_a_query():
    connection = duckdb.connect()
    connection.sql("CREATE TABLE prices AS SELECT DATE '2024-01-02' AS ds, 'WTI' AS unique_id, 70.38 AS y")
    for panel in (
        data.to_panel(connection.table("prices"), units=["$/bbl"]),
        data.to_panel(connection.sql("SELECT * FROM prices"), units=["$/bbl"]),
        data.to_panel(connection.table("prices")),
    ):
        assert panel.values.tolist() == [[70.38]]
        assert panel.read_as == "nixtla, column y, 1 symbol"


BARS = "date,open,high,low,close\n2024-01-02,1,3,0.5,2\n"
# name: (file, options, words that say what to do)
REFUSED = {
    "bid_and_ask": ("date,bid,ask\n2024-01-02,1,2\n", {}, ["bid, ask", "--column bid"]),
    "only_volume": ("date,volume\n2024-01-02,293361\n", {}, ["volume", "--column volume"]),
    "only_contract_numbers": ("date,held\n2024-01-02,20240200\n", {}, ["held", "--column held"]),
    "no_close": ("date,open,high,low\n2024-01-02,1,2,0.5\n", {}, ["open, high, low", "--column"]),
    "two_prices": ("date,symbol,one,two\n2024-01-02,A,1,2\n", {}, ["one, two", "--column one"]),
    "close_and_others": ("date,close,basis\n2024-01-02,1,2\n", {}, ["close, basis", "--column close"]),
    "settle_and_close": ("date,settle,close\n2024-01-02,1,2\n", {}, ["settle, close", "--column settle"]),
    "no_such_column": (BARS, {"column": "last"}, ["'last'", "open, high, low, close"]),
    "unknown_format": (BARS, {"format": "reuters"}, ["yfinance, databento", "'reuters'"]),
    "other_format": (BARS, {"format": "databento"}, ["the columns of databento (ts_event", "date, open"]),
    "contracts": (
        "date,symbol,expiry,settle\n2024-01-02,CL,2024-01-20,1\n2024-01-02,CL,2024-02-20,2\n", {"format": "long"},
        ["'expiry'", "data.read_contracts"],
    ),
    "two_symbol_columns": (
        "date,product,market,price\n2024-01-02,oil,NYMEX,1\n2024-01-02,gas,ICE,2\n", {}, ["product, market", "rename"],
    ),
    "years_in_columns": ("symbol,2022,2023,2024\nWTI,94.9,77.6,75.7\n", {}, ["a row for each date", "not supported"]),
    "day_numbers": ("date,WTI\n45293,70.38\n", {}, ["'45293'", "format the column as dates"]),
    "only_a_count": (
        "date,x\n" + "".join(f"2024-01-{day:02d},{day * day}\n" for day in range(1, 31)), {},
        ["'x' is a count, which only rises", "--column x"],
    ),
    "buddhist_years": ("date,WTI\n02/01/2567,1\n", {"date_order": "dmy"}, ["Buddhist", "543 years earlier"]),
    "hours": ("date,WTI\n2024-01-02 10:00,1\n2024-01-02 11:00,2\n", {}, ["line 3", "convert to daily closes", "means"]),
    "comma": ('date,WTI\n2024-01-02,"2,064"\n', {}, ["'2,064'", "--decimal"]),
    "date_order": ("date,WTI\n01/02/2024,1\n", {}, ["'01/02/2024'", "--date-order"]),
    "date_styles": ("date,WTI\n2024-01-02,1\n03/01/2024,1\n", {}, ["line 3", "the style of the first row"]),
    "stated_order": ("date,WTI\n31/01/2024,1\n", {"date_order": "mdy"}, ["line 2", "'31/01/2024'"]),
    "two_currencies": ("date,WTI\n2024-01-02,$70.38\n2024-01-03,€72.70\n", {}, ["line 3", "'€72.70'"]),
    "spreadsheet_error": ("date,WTI\n2024-01-02,#REF!\n", {}, ["line 2", "an error of the spreadsheet"]),
    "percent": ("date,WTI\n2024-01-02,1.2%\n", {}, ["line 2", "a change in percent"]),
    "quarters": ("quarter,WTI\n2024Q1,77\n", {}, ["line 2", "'2024Q1'", "daily, weekly or monthly"]),
    "weeks": ("week,WTI\n2024-W05,77\n", {}, ["line 2", "'2024-W05'", "such as its Friday"]),
    "parts_of_dates": ("Year,Month,Day,WTI\n2024,1,2,70\n", {}, ["line 2", "'2024'", "in one column"]),
    "spaces": ("date WTI\n2024-01-02 70.38\n", {}, ["separate the columns by comma"]),
    "summary": ("date,WTI\n2024-01-02,70.38\nAverage,70.38\n", {}, ["line 3", "'Average'", "remove rows"]),
    "points_of_thousands": ("date;GOLD\n2024-01-02;985\n2024-01-03;1.021\n", {}, ["'1.021'", "--decimal ,"]),
    "times_beside_dates": ("date,time,close\n2024-01-02,09:00,1\n2024-01-02,10:00,2\n", {}, ["line 3", "one price"]),
    "two_currencies_of_a_symbol": (
        "date,symbol,price,currency\n2024-01-02,A,1,USD\n2024-01-03,A,2,EUR\n", {}, ["line 3", "'EUR'"],
    ),
    "pickle": ("\x80\x04", {}, ["a pickle", "convert it to CSV"]),
    "pdf": ("%PDF-1.4", {}, ["a PDF", "convert it to CSV"]),
    "stated_decimal": ("date,WTI\n2024-01-02,70.38\n", {"decimal": ","}, ["line 2", "'70.38'", "decimal comma"]),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_read_says_what_to_do_about_a_file_that_it_refuses(name, tmp_path):
    text, options, words = REFUSED[name]
    path = tmp_path / "prices.csv"
    path.write_text(text, encoding="latin-1" if text.isascii() or "\x80" in text else "utf-8")
    with pytest.raises(data.DataError) as error:
        data.read(path, **options)
    for word in words:
        assert word in str(error.value)


def test_read_takes_points_as_thousands_where_the_comma_is_the_decimal_mark(tmp_path):
    path = tmp_path / "file.csv"
    path.write_text("Datum;Gold;Silber\n02.01.2024;2.064;23,45\n03.01.2024;2.042,8;23,1\n04.01.2024;.;1.023\n")
    np.testing.assert_array_equal(data.read(path).values.numpy(), [[2064, 23.45], [2042.8, 23.1], [nan, 1023]])


@pytest.mark.parametrize("style", ["%y/%m/%d", "%y-%m-%d", "%y.%m.%d", "%d/%m/%y", "%d.%m.%y", "%m/%d/%y"])
@pytest.mark.parametrize(
    ("first", "frequency", "rows"), [("2022-01-03", "B", 600), ("2022-01-13", "B", 5), ("2004-01-15", "SMS", 400)]
)
def test_dates_of_two_digits_each_are_told_by_their_order(tmp_path, style, first, frequency, rows):
    dates = pd.date_range(first, periods=rows, freq=frequency)
    path = tmp_path / "prices.csv"
    for days in (dates, dates[::-1]):
        path.write_text("date,WTI\n" + "".join(f"{day:{style}},{70 + n % 7}\n" for n, day in enumerate(days)))
        for order in (None, "".join(filter(str.isalpha, style))):
            assert pd.DatetimeIndex(data.read(path, date_order=order).dates).equals(dates.as_unit("s"))


def test_shuffled_month_ends_of_two_digits_each_are_days_first(tmp_path):
    months = pd.date_range("2005-01-31", periods=150, freq="ME")
    path = tmp_path / "prices.csv"
    rows = [f"{day:%d/%m/%y},{70 + n % 7}" for n, day in enumerate(months)]
    path.write_text("\n".join(["date,WTI", *np.random.default_rng(0).permutation(rows)]))
    assert pd.DatetimeIndex(data.read(path).dates).equals(months.as_unit("s"))


def test_an_impossible_day_does_not_turn_the_year_to_the_front(tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text("date,WTI\n28/02/24,70\n29/02/24,71\n30/02/24,72\n")
    with pytest.raises(
        data.DataError, match="line 4: expected a day of the calendar and a time of day; got '30/02/24'"
    ):
        data.read(path)


def test_points_beside_dates_with_dots_can_separate_thousands(tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text("Datum;Kupfer\n04.03.2024;8.450\n05.03.2024;8.512\n")
    with pytest.raises(data.DataError, match=r"'8\.450' beside dates with dots, whose point can separate thousands"):
        data.read(path)
    assert data.read(path, decimal=",").values.squeeze(1).tolist() == [8450, 8512]
    path.write_text("Date;Gas\n2024-03-04;2.050\n2024-03-05;1.985\n")
    assert data.read(path).values.squeeze(1).tolist() == [2.05, 1.985]


def test_a_line_break_in_a_column_name_is_a_space(tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text('date,"WTI\n$/bbl","BRENT \r\n$/bbl"\n2024-03-04,70,80\n2024-03-05,71,81\n')
    assert data.read(path).symbols == ("WTI $/bbl", "BRENT $/bbl")


def test_stated_wide_reads_whole_numbers_that_change_like_a_volume(tmp_path):
    freight = np.exp(np.random.default_rng(0).normal(0, 0.28, 40).cumsum()) * 1200
    months = pd.date_range("2015-01-31", periods=40, freq="ME")
    path = tmp_path / "prices.csv"
    pd.DataFrame({"date": months, "BDI": freight.astype(int), "COPPER": freight * 5.01}).to_csv(path, index=False)
    assert data.read(path).symbols == ("COPPER",)
    assert data.read(path, format="wide").symbols == ("BDI", "COPPER")


def test_units_below_names_without_a_name_for_the_dates_are_no_names(tmp_path):
    path = tmp_path / "pink.csv"
    path.write_text(
        "World Bank Commodity Price Data\n,Crude oil,Coal\n,($/bbl),($/mt)\n1960M01,1.63,…\n1960M02,1.63,9\n"
    )
    panel = data.read(path)
    assert (panel.symbols, panel.units) == (("Crude oil", "Coal"), ("$/bbl", "$/mt"))
    path.write_text(",Energy,Energy\n,WTI,BRENT\n2024-01-02,70.38,75.89\n")
    assert data.read(path).symbols == ("WTI", "BRENT")


def test_prices_that_are_multiples_of_a_hundred_are_no_contract_months(tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text("date,Tin,Copper\n2024-01-02,201200,68990\n2024-01-03,199900,68540\n2024-01-04,198000,68710\n")
    assert data.read(path).symbols == ("Tin", "Copper")


def test_times_of_day_with_am_and_pm_are_no_symbols(tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text("date,time,close\n03/14/2024,1:00 PM,70\n03/14/2024,4:00 p.m.,71\n03/15/2024,4:00 PM,72\n")
    with pytest.raises(data.DataError, match="expected one price for 2024-03-14; got 71 after 70"):
        data.read(path)
