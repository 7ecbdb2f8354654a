"""`read` of files: what is rejected (with line and value), what is reported as a finding, what is accepted."""

import gzip
import io
import os
import time
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from torchcommodity import data
from torchcommodity.data._sources.columns.numbers import parse_prices, to_number


def write(folder, body, name="prices.csv"):
    path = folder / name
    path.write_bytes(body.encode() if isinstance(body, str) else body)
    return path


def parquet(columns, **options):
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns) if isinstance(columns, dict) else columns, buffer, **options)
    return buffer.getvalue()


WIDE = "date,WTI\n2020-04-17,18.27\n"
LONG = "date,symbol,close\n2020-04-17,WTI,18.27\n"
DAY = pd.Timestamp("2020-04-17")
PARQUET = parquet({"date": [DAY], "WTI": [18.27]})
REPEATED = pa.table([pa.array([DAY]), pa.array([1.0]), pa.array([2.0])], names=["date", "A", "A"])

# name: (file, words that the message must contain)
BAD = {
    "text": (WIDE + "2020-04-20,n.a.\n", ["line 3", "'WTI'", "'n.a.'"]),
    "text_long": (LONG + "2020-04-20,WTI,abc\n", ["line 3", "'WTI'", "'abc'"]),
    "underscore": (WIDE + "2020-04-20,1_000\n", ["line 3", "'1_000'"]),
    "foreign_digits": (WIDE + "2020-04-20,١٢\n", ["line 3", "'١٢'"]),
    "hex": (WIDE + "2020-04-20,0x1F\n", ["line 3", "'0x1F'"]),
    "currency": (WIDE + "2020-04-20,$12.5\n", ["line 3", "'$12.5'"]),
    "percent": (WIDE + "2020-04-20,12%\n", ["line 3", "'12%'"]),
    "groups_of_two": (WIDE + '2020-04-20,"1,234,50.5"\n', ["line 3", "thousands", "'1,234,50.5'"]),
    "two_decimal_marks": (WIDE + '2020-04-20,"1.234,5"\n', ["line 3", "'1.234,5'", "'18.27' (line 2)", "--decimal"]),
    "undecided_comma": ('date,WTI\n2020-04-17,"1,234"\n', ["line 2", "'1,234'", "--decimal"]),
    "decimal_comma_fields": ("date,WTI\n2020-04-17,18,27\n", ["line 2", "2 fields", "decimal comma"]),
    "infinite": (WIDE + "2020-04-20,inf\n", ["line 3", "finite", "'inf'"]),
    "huge": (WIDE + "2020-04-20,1e300\n", ["line 3", "'WTI'", "between 1e-100 and 1e+100; got 1e+300"]),
    "subnormal": (WIDE + "2020-04-20,5e-324\n", ["line 3", "got 4.94066e-324"]),
    "minus_infinite": (WIDE + "2020-04-20,-Infinity\n", ["line 3", "finite"]),
    "overflow": (WIDE + "2020-04-20,1e999\n", ["line 3", "finite", "'1e999'"]),
    "no_such_day": (WIDE + "2020-02-30,1\n", ["line 3", "'2020-02-30'"]),
    "month_13": (WIDE + "2020-13-01,1\n", ["line 3", "'2020-13-01'"]),
    "year_0": (WIDE + "0000-01-01,1\n", ["line 3", "'0000-01-01'"]),
    "year_9999": (WIDE + "9999-12-31,1\n", ["line 3", "'9999-12-31'"]),
    "hour_25": (WIDE + "2020-04-20T25:00,1\n", ["line 3", "'2020-04-20T25:00'"]),
    "ambiguous_date": (WIDE + "03/04/2020,1\n", ["line 3", "2020-04-20", "'03/04/2020'"]),
    "undecided_order": ("date,A\n03/04/2020,1\n", ["line 2", "mistaken", "'03/04/2020'", "--date-order"]),
    "two_orders": ("date,A\n13/04/2020,1\n04/14/2020,2\n", ["line 3", "'04/14/2020' after '13/04/2020'"]),
    "dotted_date": (WIDE + "03.04.2020,1\n", ["line 3", "2020-04-20", "'03.04.2020'"]),
    "number_date": (WIDE + "43941,1\n", ["line 3", "'43941'"]),
    "first_date": ("date,WTI\nn.d.,70.38\n2020-04-20,1\n", ["line 2", "date", "'n.d.'"]),
    "first_date_of_an_index": (",WTI\nn.d.,70.38\n2020-04-20,1\n", ["line 2", "date", "n.d.,70.38"]),
    "blank_date": (WIDE + ",1\n", ["line 3", "date", "''"]),
    "mixed_zones": ("date,A\n2020-04-17T00:00Z,1\n2020-04-20T00:00+02:00,2\n", ["line 3", "time zone", "+02:00"]),
    "zone_and_none": ("date,A\n2020-04-17T00:00Z,1\n2020-04-20,2\n", ["line 3", "time zone", "'2020-04-20'"]),
    "two_prices_wide": (WIDE + "2020-04-17,18.28\n", ["line 3", "'WTI'", "2020-04-17", "18.28", "18.27", "line 2"]),
    "two_prices_long": (LONG + "2020-04-17,WTI,18.28\n", ["line 3", "'WTI'", "2020-04-17", "18.28", "line 2"]),
    "two_prices_intraday": (
        "date,A\n2020-04-17T09:00,1\n2020-04-17T17:00,2\n",
        ["line 3", "2020-04-17", "convert to daily closes"],
    ),
    "contracts": ("date,symbol,nth,close\n2020-04-17,A,1,1\n2020-04-17,A,2,1\n", ["line 1", "'nth'", "--curve"]),
    "no_date": ("region,WTI\nUS,1\n", ["line 1", "dates", "region"]),
    "two_dates": ("date,Date,WTI\n2020-04-17,2020-04-17,1\n", ["line 1", "date"]),
    "no_price": ("date,symbol\n2020-04-17,WTI\n", ["line 1", "price column", "date, symbol", "--column"]),
    "two_price_columns": (
        "date,symbol,close,price\n2020-04-17,WTI,1,1\n",
        ["line 1", "close, price", "--column close"],
    ),
    "only_dates": ("date\n2020-04-17\n", ["line 1", "price column"]),
    "no_header": ("2020-04-17,18.27\n2020-04-20,-37.63\n", ["line 1", "header", "row of data"]),
    "header_only": ("date,WTI\n", ["rows after the header"]),
    "header_and_blank": ("date,WTI\n\n\n", ["rows after the header"]),
    "duplicate_columns": ("date,WTI,WTI\n2020-04-17,1,2\n", ["line 1", "'WTI' twice"]),
    "unnamed_column": ("date,WTI,\n2020-04-17,1,2.5\n", ["line 1", "column 3"]),
    "blank_symbol": ("date,symbol,close\n2020-04-17,,1\n", ["line 2", "symbol"]),
    "two_units": ("date,symbol,close,unit\n2020-04-17,A,1,$\n2020-04-20,A,1,EUR\n", ["line 3", "'EUR'", "'$'"]),
    "only_separators": ("date,A\n2020-04-17,1\n,\n2020-04-20,1\n", ["line 3", "date"]),
    "long_field": (WIDE + "2020-04-20," + "9" * 200_000 + "\n", ["line 3", "CSV"]),
    "control_in_name": ("date,A\x07\n2020-04-17,1\n", ["line 1", "printable"]),
    "bell": (WIDE + "2020-04-20,\x07\n", ["line 3", "'WTI'"]),
    "line_after_multiline": ('date,symbol,close,note\n2020-04-17,A,1,"x\ny"\n2020-04-20,A,q,z\n', ["line 4", "'q'"]),
    "short_row": ("date,A,B\n2020-04-17,1\n", ["line 2", "3 fields", "got 2"]),
    "open_quote": ('date,A\n2020-04-17,"1\n', ["line 2", "CSV"]),
    "stray_quote": ('date,A\n2020-04-17,"1"2\n', ["line 2", "CSV"]),
    "two_separators": ("date;A,B\n2020-04-17;1,2\n", ["line 1", "separator"]),
    "no_price_at_all": ("date,A,B\n2020-04-17,,NaN\n", ["only missing"]),
    "latin1": (b"date,A\n2020-04-17,1\n2020-04-20,\xe9\n", ["line 3", "\u00e9"]),
    "no_encoding": (b"date,A\n2020-04-17,1\n2020-04-20,\x81\n", ["line 3", "UTF-8", "0x81"]),
    "utf16_without_mark": (WIDE.encode("utf-16-le"), ["UTF-8", "byte order mark"]),
    "nul": (b"date,A\n2020-04-17,1\n2020-04-20,\x00\n", ["line 3", "NUL"]),
    "binary": (bytes(range(256)) * 4, ["UTF-8"]),
    "html": ("<!DOCTYPE html><html><body>Service unavailable</body></html>", ["line 1", "HTML"]),
    "json": ('{"date": "2020-04-17"}', ["line 1", "JSON"]),
    "empty": ("", ["empty file"]),
    "blank": ("\n\n  \n", ["blank lines"]),
    "bom_only": (b"\xef\xbb\xbf", ["blank lines"]),
    "gzip_cut": (gzip.compress(WIDE.encode() * 50)[:-9], ["gzip"]),
    "gzip_damaged": (gzip.compress(WIDE.encode())[:-8] + b"\0" * 8, ["gzip"]),
    "gzip_empty": (gzip.compress(b""), ["empty file"]),
    "zip": (b"PK\x03\x04" + b"\0" * 40, ["zip"]),
    "parquet_cut": (PARQUET[:-20], ["Parquet"]),
    "parquet_head": (b"PAR1", ["Parquet"]),
    "parquet_damaged": (PARQUET[: len(PARQUET) // 2] + b"\xff" * 30 + PARQUET[len(PARQUET) // 2 + 30 :], ["Parquet"]),
    "parquet_no_rows": (parquet({"date": pa.array([], pa.date32()), "A": pa.array([], pa.float64())}), ["rows"]),
    "parquet_text": (parquet({"date": [DAY], "A": ["abc"]}), ["row 1", "'A'", "'abc'"]),
    "parquet_bool": (parquet({"date": [DAY], "A": [True]}), ["'A'", "bool"]),
    "parquet_inf": (parquet({"date": [DAY, DAY], "A": [1.0, float("inf")]}), ["row 2", "'A'", "finite"]),
    "parquet_no_date": (parquet({"day": [18369], "A": [1.0]}), ["date"]),
    "parquet_null_date": (parquet({"date": [DAY, None], "A": [1.0, 2.0]}), ["row 2", "date"]),
    "parquet_number_date": (parquet({"date": [43938], "A": [1.0]}), ["row 1", "43938"]),
    "parquet_name": (PARQUET.replace(b"WTI", b"W\xaaI"), ["Parquet"]),
    "parquet_year_1": (parquet({"date": pa.array([-700_000], pa.date32()), "A": [1.0]}), ["row 1", "date"]),
    "parquet_year_99999": (parquet({"date": pa.array([2**31 - 1], pa.date32()), "A": [1.0]}), ["row 1", "date"]),
    "parquet_time": (parquet({"date": pa.array([1], pa.time64("us")), "A": [1.0]}), ["row 1", "time64"]),
    "parquet_twice": (parquet(REPEATED), ["'A' twice"]),
    "parquet_conflict": (parquet({"date": [DAY, DAY], "A": [1.0, 2.0]}), ["row 2", "'A'", "2020-04-17"]),
    "parquet_list": (parquet({"date": [DAY], "A": [[1.0]]}), ["'A'", "list"]),
}


@pytest.mark.parametrize("name", BAD)
def test_read_rejects_bad_files_with_line_and_value(name, tmp_path):
    body, words = BAD[name]
    path = write(tmp_path, body)
    with pytest.raises(data.DataError) as error:
        data.read(path)
    for word in [str(path), *words]:
        assert word in str(error.value)


def test_read_rejects_text_named_parquet(tmp_path):
    with pytest.raises(data.DataError, match="expected Parquet"):
        data.read(write(tmp_path, WIDE, "prices.parquet"))


def test_read_rejects_paths_that_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    paths = {tmp_path: "a directory", tmp_path / "fifo": "a FIFO", "/dev/zero": "a device", "/dev/null": "a device"}
    paths |= {tmp_path / "absent": "No such file", tmp_path / "dangling": "No such file", tmp_path / "loop": "symbolic"}
    paths |= {"a\0b": "null", "x" * 5000: "too long"}
    for path, words in paths.items():
        with pytest.raises(data.DataError, match=words):
            data.read(path)


# name: (file, expected prices (T, N), expected symbols)
GOOD = {
    "plain": (WIDE, [[18.27]], ("WTI",)),
    "bom": (b"\xef\xbb\xbf" + WIDE.encode(), [[18.27]], ("WTI",)),
    "crlf": (WIDE.replace("\n", "\r\n"), [[18.27]], ("WTI",)),
    "cr": (WIDE.replace("\n", "\r"), [[18.27]], ("WTI",)),
    "no_last_newline": (WIDE.rstrip(), [[18.27]], ("WTI",)),
    "blank_lines": ("\n" + WIDE.replace("\n", "\n\n"), [[18.27]], ("WTI",)),
    "time": ("date,A\n2020-04-17 14:30:00,1\n2020-04-20T14:30:00.000001,2\n", [[1], [2]], ("A",)),
    "zulu": ("date,A\n2020-04-17T00:00:00Z,1\n2020-04-20T00:00:00+00:00,2\n", [[1], [2]], ("A",)),
    "one_offset": ("date,A\n2020-04-17T00:00:00-05:00,1\n2020-04-20T00:00:00-05:00,2\n", [[1], [2]], ("A",)),
    "spaces": ("date,Light sweet crude\n2020-04-17, 18.27 \n", [[18.27]], ("Light sweet crude",)),
    "quoted": ('"date","A, B","C ""D"""\n"2020-04-17","1","2"\n', [[1, 2]], ("A, B", 'C "D"')),
    "semicolon": ("date;A\n2020-04-17;1.5\n", [[1.5]], ("A",)),
    "semicolon_quoted_comma": ('date;"A, B"\n2020-04-17;1.5\n', [[1.5]], ("A, B",)),
    "decimal_comma": ("date;WTI\n2020-04-17;18,27\n", [[18.27]], ("WTI",)),
    "thousands": (WIDE + '2020-04-20,"1,234.5"\n', [[18.27], [1234.5]], ("WTI",)),
    "short_date": (WIDE + "2020-4-20,1\n", [[18.27], [1]], ("WTI",)),
    "other_name_of_dates": ("session,WTI\n2020-04-17,1\n", [[1]], ("WTI",)),
    "separators_at_line_ends": ("date,WTI,\n2020-04-17,1,\n", [[1]], ("WTI",)),
    "only_separators_below": ("date,A\n2020-04-17,1\n,\n", [[1]], ("A",)),
    "sep_line": ("sep=;\ndate;A\n2020-04-17;1\n", [[1]], ("A",)),
    "utf16": (WIDE.encode("utf-16"), [[18.27]], ("WTI",)),
    "latin1_names": ("date;Öl\n17.04.2020;18,27\n".encode("latin-1"), [[18.27]], ("Öl",)),
    "parquet_number_date": (parquet({"date": [20200417], "A": [1.0]}), [[1]], ("A",)),
    "tab": ("date\tA\n2020-04-17\t1.5\n", [[1.5]], ("A",)),
    "upper_case": ("Date,Symbol,Close\n2020-04-17,A,1\n", [[1]], ("A",)),
    "fred": (
        "observation_date,DCOILWTICO\n2020-04-17,18.31\n2020-04-20,-36.98\n",
        [[18.31], [-36.98]],
        ("DCOILWTICO",),
    ),
    "date_last": ("A,B,date\n1,2,2020-04-17\n", [[1, 2]], ("A", "B")),
    "exponent": ("date,A\n2020-04-17,1.5e3\n2020-04-20,+.5\n2020-04-21,7.\n", [[1500], [0.5], [7]], ("A",)),
    "missing": (
        "date,A,B\n2020-04-17,1,.\n2020-04-20,,2\n2020-04-21,NaN,3\n2020-04-22,NA,4\n2020-04-23,null,5\n",
        [[1, np.nan], [np.nan, 2], [np.nan, 3], [np.nan, 4], [np.nan, 5]],
        ("A", "B"),
    ),
    "long": (LONG + "2020-04-17,CORN,322\n2020-04-20,WTI,-37.63\n", [[18.27, 322], [-37.63, np.nan]], ("WTI", "CORN")),
    "long_price": ("symbol,price,date\nA,1,2020-04-17\n", [[1]], ("A",)),
    "long_value": ("date;symbol;value\n2020-04-17;A;1\n", [[1]], ("A",)),
    "gzip": (gzip.compress(WIDE.encode()), [[18.27]], ("WTI",)),
    "parquet": (PARQUET, [[18.27]], ("WTI",)),
    "parquet_gzip": (gzip.compress(PARQUET), [[18.27]], ("WTI",)),
    "parquet_text": (parquet({"date": ["2020-04-17"], "A": ["1.5"]}), [[1.5]], ("A",)),
    "parquet_text_view": (
        parquet(
            {
                "date": pa.array(["2020-04-17"], pa.string_view()),
                "symbol": pa.array(["A"], pa.string_view()),
                "close": [1.0],
            }
        ),
        [[1]],
        ("A",),
    ),
    "parquet_decimal": (
        parquet({"date": [DAY], "A": pa.array([Decimal("18.27")], pa.decimal128(9, 2))}),
        [[18.27]],
        ("A",),
    ),
    "parquet_row_numbers": (parquet({"date": [DAY], "A": [1.0], "__index_level_0__": [7]}), [[1]], ("A",)),
    "parquet_other_name_of_dates": (parquet({"session": [DAY], "A": [1.0]}), [[1]], ("A",)),
    "parquet_before_1970": (
        parquet({"date": [pd.Timestamp("1965-03-01 23:59"), DAY], "A": [1.0, 2.0]}),
        [[1], [2]],
        ("A",),
    ),
    "parquet_integers": (parquet({"date": [DAY], "A": [15]}), [[15]], ("A",)),
    "parquet_date32": (parquet({"date": [DAY.date()], "A": pa.array([1.5], pa.float32())}), [[1.5]], ("A",)),
    "parquet_zone": (
        parquet({"date": pa.array([pd.Timestamp("2020-04-17", tz="Asia/Tokyo")]), "A": [1.0]}),
        [[1]],
        ("A",),
    ),
    "parquet_null": (parquet({"date": [DAY, DAY + pd.Timedelta(days=3)], "A": [None, 1.0]}), [[np.nan], [1]], ("A",)),
    "parquet_long": (parquet({"date": [DAY], "symbol": ["A"], "close": [1.0], "unit": ["$"]}), [[1]], ("A",)),
    "parquet_dictionary": (
        parquet({"date": [DAY], "symbol": pa.array(["A"]).dictionary_encode(), "close": [1.0]}),
        [[1]],
        ("A",),
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_read_accepts_unusual_files(name, tmp_path):
    body, prices, symbols = GOOD[name]
    panel = data.read(write(tmp_path, body))
    np.testing.assert_array_equal(panel.values.numpy(), np.array(prices, dtype=float))
    assert panel.symbols == symbols
    assert panel.dates[0] == np.datetime64("1965-03-01" if name == "parquet_before_1970" else "2020-04-17")


def test_read_takes_the_index_of_a_pandas_parquet_file_as_date(tmp_path):
    frame = pd.DataFrame({"A": [1.0, 2.0]}, index=pd.to_datetime(["2020-04-17", "2020-04-20"]))
    for name, index in {"unnamed": None, "date": "date"}.items():
        frame.rename_axis(index).to_parquet(tmp_path / name)
        assert data.read(tmp_path / name).values.tolist() == [[1.0], [2.0]]


def test_read_keeps_provenance_and_units_of_a_long_file(tmp_path):
    body = (
        "date,symbol,close,unit,source\n2020-04-17,A,1,$/bbl,eia\n2020-04-20,A,2,$/bbl,rtl\n2020-04-17,B,3,index,eia\n"
    )
    panel = data.read(write(tmp_path, body), publisher="unused", license="open")
    assert panel.units == ("$/bbl", "index")
    assert [record.publisher for record in panel.provenance] == ["eia, rtl", "eia"]
    record = panel.provenance[0]
    assert (record.license, record.series, len(record.sha256)) == ("open", "A", 64)
    assert record.location == str(tmp_path / "prices.csv")


def test_parse_prices_of_a_column_are_those_of_each_cell():
    texts = ["1", "-2.5", "+.5", "7.", "1e3", "1E-3", "", " ", ".", "NaN", "nan", "NA", "n/a", "null", "#N/A", " 3 "]
    parsed = parse_prices(texts)
    np.testing.assert_array_equal(parsed.values, [to_number(text) for text in texts])
    assert not parsed.bad.any()
    for text in ("-nan", "1_0", "1e999", "infinity", "1 2", "e", "--1", "1+1", "٣", "0x1", "1d5", "nano"):
        for row in ([text], ["1", text], ["", text]):
            parsed = parse_prices(row)
            assert parsed.bad.tolist() == [False] * (len(row) - 1) + [True]
            assert "price" in parsed.problem(len(row) - 1)


@pytest.mark.slow
def test_read_5000_columns_in_seconds(tmp_path):
    days = pd.bdate_range("2020-01-01", periods=100)
    prices = np.random.default_rng(0).uniform(10, 90, (100, 5000)).round(2)
    prices[::7, ::3] = np.nan
    path = tmp_path / "wide.csv"
    pd.DataFrame(prices, index=days, columns=[f"S{i}" for i in range(5000)]).rename_axis("date").to_csv(path)
    start = time.process_time()
    panel = data.read(path)
    assert time.process_time() - start < 10
    np.testing.assert_array_equal(panel.values.numpy(), prices)


def test_read_real_prices(shared_data):
    panel = data.read(shared_data / "daily.csv.gz")
    assert panel.values.shape == (11318, 20)
    assert panel["WTI"].between("2020-04-20", "2020-04-20").values.item() == -37.63
    negative = [(f.symbol, f.date, f.value) for f in panel.findings if f.kind == "nonpositive"]
    assert negative == [("WTI", "2020-04-20", "-37.63"), ("WTI_SPOT", "2020-04-20", "-36.98")]
    frame = pd.read_csv(shared_data / "daily.csv.gz").pivot(index="date", columns="symbol", values="close")
    np.testing.assert_array_equal(panel.select(frame.columns).values.numpy(), frame.to_numpy())


def test_read_prefers_symbol_to_other_identifiers(tmp_path):
    panel = data.read(write(tmp_path, "id,date,symbol,ticker,close\n7,2020-04-17,A,AX,1\n"))
    assert panel.symbols == ("A",)
    assert [f.value for f in panel.findings if f.kind == "ignored column"] == ["id, ticker"]


def test_read_takes_the_columns_of_nixtla(tmp_path):
    assert data.read(write(tmp_path, "unique_id,ds,y\nA,2020-04-17,1.5\n")).values.tolist() == [[1.5]]
