"""Text in the encodings of other countries: told by its words, stated, or refused with the readings."""

import pytest

from torchcommodity import data
from torchcommodity.data._sources.tables.delimited import decode
from torchcommodity.data._sources.tables.table import Origin

ROWS = "\n2024-03-04,3771,3782,3755,3761,1203344\n2024-03-05,3760,3768,3740,3744,1100234\n"  # RB0 of Shanghai
HEADS = {
    "gbk": "日期,开盘价,最高价,最低价,收盘价,成交量",
    "gb18030": "交易日期,今开盘,最高价,最低价,今收盘,成交量",
    "big5": "日期,開盤價,最高價,最低價,收盤價,成交量",
    "shift_jis": "日付,始値,高値,安値,終値,出来高",
    "euc-kr": "날짜,시가,고가,저가,종가,거래량",
    "cp1251": "Дата,Открытие,Макс.,Мин.,Закрытие,Объём",
    "cp1250": "Data,Otwarcie,Najwyższy,Najniższy,Zamknięcie,Wolumen",
    "cp1254": "Tarih,Aç\u0131l\u0131ş,Yüksek,Düşük,Kapan\u0131ş,Hacim",
    "cp1252": "Datum,Eröffnung,Höchst,Tiefst,Schluss,Stücke",
}
NAMES = {
    "gbk": ("螺纹钢", "豆粕", "沪深铜"),
    "big5": ("黃豆", "黃金", "原油"),
    "shift_jis": ("とうもろこし", "金標準", "ガソリン"),
    "euc-kr": ("금현물", "원유", "돼지고기"),
    "cp1251": ("Пшеница", "Нефть", "Золото"),
    "cp1252": ("Rohöl", "Kakao", "Blé"),
}


@pytest.mark.parametrize("encoding", HEADS)
def test_bars_are_read_in_the_encoding_of_their_country(tmp_path, encoding):
    path = tmp_path / "RB0.csv"
    path.write_bytes((HEADS[encoding] + ROWS).encode(encoding))
    panel = data.read(path)
    assert panel.read_as == f"bars, column {HEADS[encoding].split(',')[4]}, 1 symbol"
    assert (panel.symbols, panel.values.squeeze(1).tolist()) == (("RB0",), [3761.0, 3744.0])
    assert [finding.kind for finding in panel.findings if finding.kind == "encoding"] == ["encoding"]
    stated = data.read(path, encoding=encoding)
    assert stated.read_as == panel.read_as
    assert "encoding" not in {finding.kind for finding in stated.findings}


@pytest.mark.parametrize("encoding", NAMES)
def test_symbols_outside_ascii_are_read_in_their_script(tmp_path, encoding):
    path = tmp_path / "prices.csv"
    rows = (f"2024-03-04,{name},{price}" for name, price in zip(NAMES[encoding], ("3771", "3050", "70.38")))
    path.write_bytes("\n".join(["date,symbol,close", *rows]).encode(encoding))
    assert data.read(path, encoding=encoding).symbols == NAMES[encoding]
    if encoding != "euc-kr":
        assert data.read(path).symbols == NAMES[encoding]
    else:  # Chinese and Korean share their bytes
        with pytest.raises(data.DataError, match=r"in gb18030 or '.*금현물.*' in cp949; say which with --encoding "):
            data.read(path)


def test_encoding_that_is_not_known_or_not_that_of_the_text_is_refused(tmp_path):
    path = tmp_path / "prices.csv"
    path.write_bytes((HEADS["gbk"] + ROWS).encode("gbk"))
    with pytest.raises(data.DataError, match=r"^encoding: expected an encoding that Python knows, .*; got 'gb19'$"):
        data.read(path, encoding="gb19")
    with pytest.raises(data.DataError, match=r"^encoding: expected an encoding that Python knows, .*; got 'rot13'$"):
        data.read(path, encoding="rot13")
    with pytest.raises(data.DataError, match=r"line 1: expected text in ascii, as encoding= says; got byte 0xc8"):
        data.read(path, encoding="ascii")


def test_utf_16_without_a_mark_is_read_as_stated(tmp_path):
    path = tmp_path / "prices.csv"
    path.write_bytes(("date,WTI\n2024-01-02,70.38\n").encode("utf-16-le"))
    with pytest.raises(data.DataError, match=r"--encoding utf-16-le \(encoding=\)"):
        data.read(path)
    assert data.read(path, encoding="utf-16-le").values.tolist() == [[70.38]]


def test_names_of_western_languages_stay_windows_1252():
    for text in (
        "date,Zürich Öl\n",
        "Datum;Rohöl;Erdgas\n",
        "date;Clôture;café\n",
        "fecha,Petróleo,Café,Azúcar,Algodón\n",
    ):
        assert decode(text.encode("cp1252"), Origin("x")) == (text, "cp1252")


def test_rows_in_another_separator_are_no_notes(tmp_path):
    """The separator changes in the middle; with a name in each row, those below look like notes."""
    lines = (
        data.embedded(["WTI"])
        .to_pandas("long")
        .tail(1196)[["date", "symbol", "price"]]
        .to_csv(index=False)
        .splitlines()
    )
    path = tmp_path / "prices.csv"
    path.write_text("\n".join([*lines[:400], *(line.replace(",", ";") for line in lines[400:])]))
    with pytest.raises(
        data.DataError, match=r"line 401: expected 3 fields as in the header; got '20.*WTI.*', 797 such"
    ):
        data.read(path)


def test_many_lines_below_the_table_are_refused(tmp_path):
    path = tmp_path / "prices.csv"
    table = "date,WTI\n2024-01-02,70.38\n"
    path.write_text(table + "Source: EIA\n" * 3)
    findings = [str(finding) for finding in data.read(path).findings if finding.kind == "ignored line"]
    assert findings[0] == "ignored line 3: Source: EIA (dropped)"
    path.write_text(table + "Source: EIA\n" * 21)
    with pytest.raises(
        data.DataError, match="line 3: expected 2 fields as in the header; got 'Source: EIA', 21 such lines"
    ):
        data.read(path)


def test_a_symbol_with_a_hash_is_no_comment(tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text("# from EIA\nsymbol,date,close\n#ES,2024-01-02,4788\n#CL,2024-01-02,70.38\n")
    assert data.read(path).symbols == ("#ES", "#CL")
