"""Which column is the price: by the numbers, whatever the names; the names of the columns as vendors write them."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from torchcommodity import data, fit

SHARED = Path(os.environ.get("TORCHCOMMODITY_SHARED", "../shared"))
HEADER = "date,open,high,low,close,volume,hold,settle\n"
REBAR = (  # RB0 of Shanghai
    "2024-03-04,3771,3782,3755,3761,1203344,1705000,",
    "2024-03-05,3760,3768,3740,3744,1100234,1699000,",
    "2024-03-06,3745,3757,3721,3735,1300234,1698000,",
    "2024-03-07,3735,3746,3711,3718,1250234,1697000,",
)
GOLD = (  # KRX
    "2024-03-04,88000,88500,87800,88300,81234,0.1\n2024-03-05,88300,89000,88100,88900,91234,0.68\n"
    "2024-03-06,88900,89100,88000,88200,71234,-0.79\n2024-03-07,88200,88700,87900,88650,61234,0.51\n"
)


@pytest.fixture(scope="module")
def bars() -> pd.DataFrame:
    """Daily bars of WTI, gold, natural gas and sugar."""
    path = SHARED / "data" / "bars.csv.gz"
    if not path.exists():
        pytest.skip(f"no prices at {path}")
    return pd.read_csv(path, parse_dates=["date"]).set_index("symbol").loc[["WTI", "GOLD", "NATGAS", "SUGAR"]]


def read(folder: Path, text: str, name: str = "prices.csv", **options: str) -> data.Panel:
    (folder / name).write_text(text, encoding="utf-8")
    return data.read(folder / name, **options)


@pytest.mark.parametrize(
    ("settles", "column"),
    [(["0"] * 4, "close"), (["3766", "0", "0", "3718"], "close"), (["3766", "", "", "3718"], "close"),
     (["3766", "3750", "3740", ""], "settle"), (["3766", "3750", "3740", "3722"], "settle")],
    ids=["zeros", "zeros_between", "gaps", "not_yet_published", "full"],
)  # fmt: skip
def test_settlement_is_the_price_where_it_is_filled(tmp_path, settles, column):
    panel = read(tmp_path, HEADER + "\n".join(map("".join, zip(REBAR, settles))), "RB0.csv")
    assert panel.read_as == f"bars, column {column}, 1 symbol"
    findings = [str(finding) for finding in panel.findings if finding.kind == "no price"]
    assert len(findings) == (column == "close")
    assert all(
        "'settle' has a price in" in finding and "column= or --column reads it" in finding for finding in findings
    )


@pytest.mark.parametrize("more", ["", ",open_interest", ",open_interest,turnover,pre_settle"])
def test_settlement_is_the_price_whatever_stands_beside_it(tmp_path, more):
    cells = ",1705000,9,3750"[: {0: 0, 1: 8, 3: 15}[more.count(",")]]
    text = (
        f"symbol,date,open,high,low,close,volume,settle{more}\nRB0,20240304,3771,3782,3755,3761,1203344,3766{cells}\n"
    )
    panel = read(tmp_path, text)
    assert (panel.values.tolist(), panel.read_as) == ([[3766.0]], "bars, column settle, 1 symbol")
    assert data.read_bars(tmp_path / "prices.csv").close.tolist() == [[3766.0]]


def test_settlement_of_prices_by_contract_is_the_price_where_it_is_filled(tmp_path):
    text = "date,contract,close,settle\n2020-04-17,CLK20,18.27,0\n2020-04-17,CLM20,25.03,0\n2020-04-20,CLK20,-37.63,0\n"
    assert read(tmp_path, text).values.tolist() == [[18.27], [-37.63]]


@pytest.mark.parametrize(
    "head", ["날짜,시가,고가,저가,종가,거래량,등락률", "d,x1,x2,x3,x4,x5,x6", "날,가,나,다,라,마,바"]
)
def test_bars_are_known_by_their_numbers(tmp_path, head):
    panel = read(tmp_path, f"{head}\n{GOLD}", "gold.csv")
    assert panel.symbols == ("gold",)
    assert panel.values.squeeze(1).tolist() == [88300, 88900, 88200, 88650]
    assert panel.read_as == f"bars, column {head.split(',')[4]}, 1 symbol"


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("symbol", ["WTI", "GOLD", "NATGAS", "SUGAR"])
def test_close_of_bars_without_known_names_is_the_price(bars, symbol, newest_first):
    frame = bars.loc[symbol].tail(700).set_index("date")[["volume", "high", "close", "low", "open"]]
    frame = frame.set_axis(list("abcde"), axis=1).iloc[:: -1 if newest_first else 1]
    panel = data.to_panel(frame)
    assert panel.read_as == "bars, column c, 1 symbol"
    np.testing.assert_array_equal(panel.values.squeeze(1), frame["c"].sort_index())


@pytest.mark.parametrize("rows", [6, 20, 120, 600])
def test_prices_of_related_goods_are_no_bars(rows):
    oil = data.embedded([name for name in data.embedded_symbols("monthly") if "CRUDE" in name], frequency="monthly")
    assert data.to_panel(oil.to_pandas().tail(rows)).symbols == oil.symbols  # the average lies between the others
    fuels = data.embedded(["ULSD_NYH", "ULSD_USGC", "JET_FUEL_USGC", "HEATING_OIL_NYH"]).to_pandas().dropna().tail(rows)
    assert data.to_panel(fuels).symbols == tuple(fuels)


def test_flags_changes_counts_and_volumes_beside_prices_are_no_prices(bars):
    wti = bars.loc["WTI"].tail(700).set_index("date")
    close, days = wti["close"], np.arange(700)
    table = pd.DataFrame({
        "oil": close, "moved": close.diff().fillna(0), "above": close - close.mean(), "war": (days > 600).astype(int),
        "since": days, "lots": wti["volume"], "side": np.sign(close.diff().fillna(0)).astype(int),
    })  # fmt: skip
    panel = data.to_panel(table)
    assert panel.symbols == ("oil",)
    words = " ".join(finding.value for finding in panel.findings if finding.kind == "no price")
    assert all(f"'{name}' is" in words for name in table.columns.drop("oil"))
    for name in table.columns.drop("oil"):
        assert data.to_panel(table, column=name).symbols == (name,)
        if name not in ("moved", "above", "since"):
            with pytest.raises(data.DataError, match=f"if one is a price, name it with --column {name} "):
                fit(table[[name]])


def test_two_prices_beside_a_volume_are_refused(bars):
    wti = bars.loc["WTI"].tail(200).set_index("date")
    table = (
        wti[["close", "volume"]].assign(other=bars.loc["GOLD"].set_index("date")["close"]).set_axis(list("abc"), axis=1)
    )
    with pytest.raises(
        data.DataError, match=r"expected one price column; got a, c; name it with --column a \(column=\)"
    ):
        data.to_panel(table)
    assert data.to_panel(table, column="a").symbols == ("a",)


def test_four_columns_in_few_rows_are_refused_with_both_readings(tmp_path):
    text = "날,가,나,다,라\n" + "\n".join(",".join(line.split(",")[:5]) for line in GOLD.splitlines())
    with pytest.raises(data.DataError) as error:
        read(tmp_path, text)
    assert all(words in str(error.value) for words in ("--column '라' (column=)", "--format wide (format='wide')"))
    assert read(tmp_path, text, column="라").values.squeeze(1).tolist() == [88300, 88900, 88200, 88650]
    assert read(tmp_path, text, format="wide").symbols == tuple("가나다라")


def test_layout_of_a_vendor_is_known_by_all_of_its_names(tmp_path):
    """A file with some of Barchart's columns has no month before day for that."""
    text = "time,open,high,low,last\n01/02/2024,71.7,73.6,70.1,70.38\n"
    with pytest.raises(data.DataError, match=r"date_order="):
        read(tmp_path, text)
    assert str(read(tmp_path, text, date_order="dmy").dates[0]) == "2024-02-01"


LANGUAGES = {
    "cn": ("日期,收盘,开盘,高,低,交易量,涨跌幅", "2025-6-{}", "."),
    "kr": ("날짜,종가,시가,고가,저가,거래량,변동 %", "2025- 06- {}", "."),
    "tr": ("Tarih,Şimdi,Aç\u0131l\u0131ş,Yüksek,Düşük,Hac.,Fark %", "{}.06.2025", ","),
    "ru": ("Дата,Цена,Откр.,Макс.,Мин.,Объём,Изм. %", "{}.06.2025", ","),
    "pl": ("Data,Ostatnio,Otwarcie,Max.,Min.,Wol.,Zmiana%", "{}.06.2025", ","),
    "id": ("Tanggal,Terakhir,Pembukaan,Tertinggi,Terendah,Vol.,Perubahan%", "{}/06/2025", ","),
    "vn": ("Ngày,Lần cuối,Mở,Cao,Thấp,KL,% Thay đổi", "{}/06/2025", "."),
    "ar": ("التاريخ,الأخير,الفتح,الأعلى,الأدنى,الحجم,نسبة التغير", "{}/06/2025", "."),
    "th": ("วันเดือนปี,ล่าสุด,เปิด,สูง,ต่ำ,ปริมาณ,% เปลี่ยน", "{}/06/2025", "."),
    "gr": ("Ημερομηνία,Τελευταία,Άνοιγμα,Υψηλό,Χαμηλό,Όγκος,Μεταβολή %", "{}/06/2025", ","),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_investing_is_read_in_its_languages(tmp_path, language):
    head, day, mark = LANGUAGES[language]
    rows = (("16", "71.77", "70.10", "72.30", "69.90", "250.11K", "-1.66%"),
            ("13", "72.98", "71.10", "74.30", "70.90", "350.11K", "7.26%"),
            ("12", "68.04", "68.20", "69.10", "67.90", "-", "-0.16%"))  # fmt: skip
    lines = [",".join(f'"{cell}"' for cell in head.split(","))]
    for number, *cells in rows:
        lines.append(",".join(f'"{cell}"' for cell in (day.format(number), *(c.replace(".", mark) for c in cells))))
    panel = read(tmp_path, "\n".join(lines), "Crude Oil.csv")
    assert panel.symbols == ("Crude Oil",)
    assert panel.values.squeeze(1).tolist() == [68.04, 72.98, 71.77]
    assert panel.dates.astype(str).tolist() == ["2025-06-12", "2025-06-13", "2025-06-16"]
    assert panel.bars is not None


def test_lakhs_and_crores_are_numbers(tmp_path):
    text = (
        'Date,Symbol,Expiry Date,Open,High,Low,Close\n29-Aug-2025,GOLD,03-Oct-2025,"1,02,100.00","1,03,899.00",'
        '"1,01,800.00","1,03,824.00"\n28-Aug-2025,GOLD,03-Oct-2025,"99,100.00","1,02,899.00","99,000.00","99,824.00"\n'
    )
    assert read(tmp_path, text).values.tolist() == [[99824], [103824]]


TICKERS = (  # B3, consolidated trades
    "RptDt;TckrSymb;ISIN;SgmtNm;MinPric;MaxPric;TradAvrgPric;LastPric;OscnPctg;AdjstdQt;TradQty\n"
    "2026-09-09;BGIV26;BRBMEFBGI1A1;AGRIBUSINESS;312,35;315,80;314,02;315,10;0,62;314,95;1204\n"
    "2026-09-09;BGIX26;BRBMEFBGI1B9;AGRIBUSINESS;317,35;320,80;319,02;320,10;0,62;319,80;204\n"
    "2026-09-10;BGIV26;BRBMEFBGI1A1;AGRIBUSINESS;312,35;316,80;314,02;316,10;0,62;315,95;1204\n"
)


def test_columns_of_symbols_contracts_and_dates_can_be_named(tmp_path):
    with pytest.raises(data.DataError) as error:
        read(tmp_path, TICKERS, column="AdjstdQt")
    assert "--symbol TckrSymb (symbol=)" in str(error.value)
    assert "--contract TckrSymb (contract=)" in str(error.value)
    symbols = read(tmp_path, TICKERS, symbol="TckrSymb", column="AdjstdQt", date="RptDt")
    np.testing.assert_array_equal(symbols.values, [[314.95, 319.8], [315.95, np.nan]])
    assert symbols.symbols == ("BGIV26", "BGIX26")
    front = read(tmp_path, TICKERS, contract="TckrSymb", column="AdjstdQt")
    assert (front.symbols, front.values.tolist()) == (("BGI",), [[314.95], [315.95]])
    contracts = data.read_contracts(tmp_path / "prices.csv", contract="TckrSymb", column="AdjstdQt")
    assert contracts.deliveries.astype(str).tolist() == ["2026-10", "2026-11"]
    with pytest.raises(
        data.DataError, match=r"expected a column named 'Ticker' \(--symbol, symbol=\); got RptDt, Tckr"
    ):
        read(tmp_path, TICKERS, symbol="Ticker")


def test_months_in_a_column_of_their_own_are_contracts(tmp_path):
    text = (  # TAIFEX
        "交易日期,契約,到期月份(週別),開盤價,最高價,最低價,收盤價,漲跌價,漲跌%,成交量,結算價\n"
        "2024/09/02,TGF,202410,2500,2510,2490,2505,5,0.2%,120,2504\n2024/09/02,TGF,202412,2520,2530,2510,2525,5,0.2%,20,2524\n"
        "2024/09/02,TGF,202409W1,2520,2530,2510,2525,5,0.2%,20,2524\n2024/09/03,TGF,202410,2505,2515,2495,2508,3,0.12%,110,2507\n"
    )
    panel = read(tmp_path, text)
    assert (panel.symbols, panel.values.tolist()) == (("TGF",), [[2504], [2507]])
    assert [finding.count for finding in panel.findings if finding.kind == "combined contract"] == [1]
    other = text.replace("契約", "Prod").replace("到期月份(週別)", "Mon").replace("結算價", "S")
    named = read(tmp_path, other, symbol="Prod", contract="Mon", column="S")
    assert (named.symbols, named.values.tolist()) == (("TGF",), [[2504], [2507]])


def test_a_second_column_of_dates_can_be_left_out(tmp_path):
    text = "trade,settled,WTI\n2024-01-02,2024-01-04,70.38\n2024-01-03,2024-01-05,72.7\n"
    with pytest.raises(
        data.DataError, match=r"expected one column of dates; got trade, settled; name it with --date trade "
    ):
        read(tmp_path, text)
    assert str(read(tmp_path, text, date="trade").dates[0]) == "2024-01-02"


def test_amounts_and_changes_are_read_where_their_column_is_named(tmp_path):
    text = "Date,Price,Vol.,Change %\n2025-06-13,72.98,350.11K,7.26%\n2025-06-16,71.77,250.11K,-1.66%\n"
    assert read(tmp_path, text).values.squeeze(1).tolist() == [72.98, 71.77]
    assert read(tmp_path, text, column="Vol.").values.squeeze(1).tolist() == [350110, 250110]
    assert read(tmp_path, text, column="Change %").values.squeeze(1).tolist() == [7.26, -1.66]


def test_returns_are_never_fitted():
    returns = np.log(data.embedded(["BRENT", "HENRY_HUB"]).to_pandas()).diff().iloc[1:]
    with pytest.raises(ValueError, match=r"every symbol must have prices, not returns .* for BRENT, HENRY_HUB"):
        fit(returns)


def test_bars_of_unknown_names_have_all_their_fields(bars):
    frame = bars.loc["SUGAR"].tail(300).set_index("date")[["low", "high", "close", "open"]]
    read_back = data.read_bars(frame.set_axis(list("abcd"), axis=1))
    for field in ("open", "high", "low", "close"):
        np.testing.assert_array_equal(getattr(read_back, field).squeeze(1), frame[field])


@pytest.mark.parametrize("column", ["品种月份", "品种代码"])
def test_contracts_of_zhengzhou_are_joined(tmp_path, column):
    text = (
        f"交易日期|{column}|昨结算|今开盘|最高价|最低价|今收盘|今结算|成交量(手)|空盘量\n"
        "2024-03-04|CF405|16,000.00|16,010.00|16,100.00|15,950.00|16,050.00|16,030.00|300,123|500,123\n"
        "2024-03-04|CF409|16,100.00|16,110.00|16,200.00|16,050.00|16,150.00|16,130.00|100,123|200,123\n"
    )
    panel = read(tmp_path, text)
    assert (panel.symbols, panel.values.tolist(), str(panel.deliveries[0, 0])) == (("CF",), [[16030.0]], "2024-05")


def test_spreads_beside_prices_are_symbols():
    oil = data.embedded(["WTI", "BRENT"]).between("2015-01-01", "2016-12-31")
    frame = oil.to_pandas()
    frame["BASIS"] = frame["BRENT"] - frame["WTI"] - 2
    frame["move"] = frame["WTI"].diff()
    panel = data.to_panel(frame.dropna())
    assert panel.symbols == ("WTI", "BRENT", "BASIS")
    assert data.to_panel(frame.dropna().reset_index()[::-1]).symbols == panel.symbols


@pytest.mark.parametrize("symbol", ["WTI", "GOLD", "NATGAS", "SUGAR"])
def test_close_of_bars_without_an_open_is_the_price(bars, symbol):
    frame = bars.loc[symbol].tail(300).set_index("date")[["high", "low", "close"]]
    panel = data.to_panel(frame.set_axis(["Högst", "Lägst", "Stängning"], axis=1))
    assert panel.read_as == "bars, column Stängning, 1 symbol"
    np.testing.assert_array_equal(panel.values.squeeze(1), frame["close"])


@pytest.mark.parametrize("rows", [60, 120, 600])
@pytest.mark.parametrize(
    "names",
    [
        ("CRUDE_OIL_BRENT", "CRUDE_OIL_WTI", "CRUDE_OIL_DUBAI"),
        ("CRUDE_OIL_AVERAGE", "CRUDE_OIL_BRENT", "CRUDE_OIL_DUBAI"),
    ],
)
def test_three_prices_of_related_goods_are_no_bars(names, rows):
    oil = data.embedded(names, frequency="monthly").to_pandas().tail(rows)
    assert data.to_panel(oil).symbols == names


def test_amounts_of_energy_are_no_prices(tmp_path):
    text = "Datum;Cena (EUR/MWh);Množství (MWh)\n4. 1. 2021;50,26;1200,5\n5. 1. 2021;58,11;1310,2\n"
    panel = read(tmp_path, text)
    assert (panel.symbols, panel.values.tolist()) == (("Cena (EUR/MWh)",), [[50.26], [58.11]])
    assert panel.dates.astype(str).tolist() == ["2021-01-04", "2021-01-05"]


@pytest.mark.parametrize(
    ("head", "price"),
    [("<Ticker>,<DTYYYYMMDD>,<Open>,<High>,<Low>,<Close>,<Volume>", "<Close>"),  # CafeF
     ("SECID,TRADEDATE,OPEN,HIGH,LOW,SETTLEPRICEDAY,VOLUME", "SETTLEPRICEDAY"),  # MOEX
     ("Nazwa,Data,Kurs otwarcia,Kurs max,Kurs min,Kurs zamknięcia,Wolumen", "Kurs zamknięcia")],  # GPW
    ids=["cafef", "moex", "gpw"],
)  # fmt: skip
def test_bars_of_more_exchanges_are_read(tmp_path, head, price):
    rows = "".join(f"RB0,{line.replace('-', '').rsplit(',', 2)[0]}\n" for line in REBAR)
    panel = read(tmp_path, f"{head}\n{rows}")
    assert (panel.symbols, panel.read_as) == (("RB0",), f"bars, column {price}, 1 symbol")
    assert panel.values.squeeze(1).tolist() == [3761, 3744, 3735, 3718]
    assert panel.bars is not None


def test_times_of_the_day_in_a_column_of_their_own_are_refused(tmp_path):
    text = "<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\n"
    text += "".join(f"2024.01.02\t{hour:02}:00:00\t71\t72\t70\t{71 + hour / 10}\n" for hour in (0, 4, 8))
    with pytest.raises(data.DataError, match=r"got several times of the day; convert to daily closes"):
        read(tmp_path, text)
    assert read(tmp_path, "\n".join(text.splitlines()[:2])).values.tolist() == [[71]]


def test_the_price_that_a_refusal_names_is_no_date(tmp_path):
    text = "Market_and_Exchange_Names,As_of_Date_In_Form_YYMMDD,Report_Date_as_YYYY-MM-DD,Open_Interest_All\n"
    text += '"CRUDE OIL, WTI",240102,2024-01-02,1605123\n"CRUDE OIL, WTI",240109,2024-01-09,1605223\n'
    with pytest.raises(data.DataError, match="name it with --column Open_Interest_All "):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("head", "cells", "price"),
    [("Date,Open,High,Low,Close*,Adj Close**,Volume", "3771,3782,3755,3761,3750,1203344", "Close*"),  # of Yahoo's page
     ("ds,y,yhat,yhat_lower,yhat_upper", "3761,3770,3700,3800", "y"),  # of Prophet
     ("Date,WTI,Upper,Lower", "3761,3800,3700", "WTI"),
     ("Date,Contract No,Price USD,Forecast", "17,3761,3770", "Price USD"),
     ("Arrival_Date,Min Price,Max Price,Modal Price", "3740,3800,3761", "Modal Price")],  # of Agmarknet
    ids=["asterisks", "forecasts", "bands", "numbers", "extremes"],
)  # fmt: skip
def test_what_stands_beside_a_price_is_no_symbol(tmp_path, head, cells, price):
    panel = read(tmp_path, f"{head}\n" + "".join(f"2024-03-{day:02},{cells}\n" for day in (4, 5, 6)), "Oil.csv")
    assert (panel.read_as.split(", ")[1], panel.values.squeeze(1).tolist()) == (f"column {price}", [3761.0] * 3)


@pytest.mark.parametrize(
    ("head", "price"),
    [("Low,High,Mid", "Mid"), ("Bid,Offer,Mid", "Mid")],
)  # fmt: skip
def test_a_refusal_names_the_likeliest_price(tmp_path, head, price):
    text = f"Date,{head},Volume\n2024-03-04,3755,3782,3761,1203344\n2024-03-05,3740,3768,3744,1100234\n"
    with pytest.raises(data.DataError, match=rf"name it with --column {price} \(column=\)"):
        read(tmp_path, text)


def test_rupees_are_prices(tmp_path):
    assert read(tmp_path, 'Date,Gold\n29-Aug-2025,"₹ 1,03,824.00"\n').values.tolist() == [[103824.0]]
