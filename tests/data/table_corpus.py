"""Several hundred small tables of real prices: good ones, doubtful ones with the finding that has to appear, bad ones
with words of the message. Doubtful and bad ones are good ones in which one thing is changed.
"""

import csv
import gzip
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

ROWS = 600
GOOD_NAMES = (
    "^GSPC", "BRK-B", "EURUSD=X", "C H97", "Crude oil, Brent", "S&P 500", "M&G", "EUR/USD", "&CL", "$VIX", "#ES",
    "6E", "Zürich Öl", "原油", "O'Reilly", "Gas [TTF]", "100%",
    "A;B", "Robert'); DROP TABLE prices;--", "${css}", "a..b",
)  # fmt: skip
BAD_NAMES = (
    "=cmd()", "=1+1", "+A1", "-2+3", "@SUM(A1)", "\uff1dcmd()", "../../etc/passwd", "/etc/passwd", "a/../b", "..",
    "C:\\Windows", "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "a>b", "a\x1b[31mb", "a\u202eb",
    "W\u200bTI", "W\u3164TI", "x" * 129, "???",
)  # fmt: skip
SLIPS = (10.0, 100.0, 1000.0, 0.1, 0.01, 0.001)

Frame = pd.DataFrame
Source = Any  # a path or a frame
Change = Callable[[Frame], Frame]


@dataclass(frozen=True)
class Case:
    """One table: `source(folder)` writes it, or returns a frame."""

    name: str
    category: Literal["good", "doubtful", "bad"]
    expected: str  # kind of the finding, or words of the message
    source: Callable[[Path], Source]


def wide_csv(frame: Frame, folder: Path) -> Source:
    frame.to_csv(folder / "wide.csv", quoting=csv.QUOTE_NONNUMERIC)
    return folder / "wide.csv"


def long_csv(frame: Frame, folder: Path) -> Source:
    long_frame(frame).to_csv(folder / "long.csv", index=False)
    return folder / "long.csv"


def wide_parquet(frame: Frame, folder: Path) -> Source:
    frame.reset_index().to_parquet(folder / "wide.parquet")
    return folder / "wide.parquet"


def in_memory(frame: Frame, folder: Path) -> Source:
    return frame


def long_frame(frame: Frame) -> Frame:
    table = frame.reset_index().melt("date", var_name="symbol", value_name="close")
    return table.dropna(subset="close").reset_index(drop=True)


WRITERS = (wide_csv, long_csv, wide_parquet, in_memory)


def text_file(text: str, name: str = "prices.csv") -> Callable[[Path], Source]:
    def write(folder: Path) -> Source:
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
        return folder / name

    return write


def cases(daily: Frame, monthly: Frame) -> list[Case]:
    """All cases, from daily and from monthly prices with an index `date`."""
    recent = daily[["WTI", "BRENT", "HENRY_HUB"]].dropna().tail(ROWS)
    return [*_good(daily, recent), *_doubtful(recent, monthly), *_bad(recent)]


def _good(daily: Frame, recent: Frame) -> Iterator[Case]:
    for writer in WRITERS:
        yield _case("three symbols", "good", "", recent, writer)
        yield _case("other holidays", "good", "", _holidays(recent), writer)
        yield _case("a late start", "good", "", recent.assign(NEW=recent["WTI"].where(np.arange(ROWS) >= 80)), writer)
    for symbol in daily:
        prices = daily[[symbol]].dropna()
        ends = prices[prices > 0].resample("BME").last().dropna().tail(240)
        for writer in WRITERS:
            yield _case(f"{symbol} of 600 days", "good", "", prices.tail(ROWS), writer)
            yield _case(f"{symbol} at month ends", "good", "", ends, writer)
    for name in GOOD_NAMES:
        for writer in (wide_csv, long_csv, in_memory):
            yield _case(f"named {name}", "good", "", recent[["WTI"]].set_axis([name], axis=1), writer)
    text = recent.to_csv()
    for name, content in {
        "semicolons": recent.to_csv(sep=";"),
        "tabs": recent.to_csv(sep="\t"),
        "CRLF": text.replace("\n", "\r\n"),
        "a byte-order mark": "\ufeff" + text,
        "blank lines": text.replace("\n", "\n\n"),
        "quotes": recent.to_csv(quoting=2),
        "midnights": recent.to_csv(date_format="%Y-%m-%d 00:00:00"),
        "missing as NA": _holidays(recent).to_csv(na_rep="NA"),
    }.items():
        yield Case(name, "good", "", text_file(content))
    yield Case("gzip", "good", "", text_file(gzip.compress(text.encode()), "prices.csv.gz"))
    yield Case("with its source", "good", "", text_file(long_frame(recent).assign(source="EIA").to_csv(index=False)))


def _doubtful(recent: Frame, monthly: Frame) -> Iterator[Case]:
    for kind, changes in CHANGES.items():
        for n, change in enumerate(changes):
            for writer in WRITERS:
                yield _case(f"{kind} {n}", "doubtful", kind, change(recent), writer)
    for symbol in monthly.columns.difference(["GOLD", "COPPER"])[:20]:
        yield _case(f"average of {symbol}", "doubtful", "month average", monthly[["GOLD", symbol, "COPPER"]], wide_csv)
    text, first = recent.to_csv(), recent.to_csv().splitlines()[1]
    for kind, content in {
        "duplicate": f"{text}{first}\n",
        "split row": f"{text}2020-01-02,1,,\n2020-01-02,,2,3\n",
        "ignored column": long_frame(recent).assign(volume=1).to_csv(index=False),
        "empty row": f"{text}2020-01-02,,,\n",
        "empty column": recent.assign(EMPTY=np.nan).to_csv(),
        "generic name": recent[["WTI"]].set_axis(["close"], axis=1).to_csv(),
        "time of day": recent.to_csv(date_format="%Y-%m-%d 16:00:00"),
        "ending without compression": ("prices.csv.gz", text),
        "compressed without ending": ("prices.csv", gzip.compress(text.encode())),
        "origin not stated": text,
        "text numbers": ("prices.parquet", _parquet(recent.astype(str).reset_index())),
    }.items():
        name, body = content if isinstance(content, tuple) else ("prices.csv", content)
        yield Case(kind, "doubtful", kind, text_file(body, name))


def _bad(recent: Frame) -> Iterator[Case]:
    for name in BAD_NAMES:
        for writer in WRITERS:
            yield _case(f"named {name}", "bad", "got", recent[["WTI"]].set_axis([name], axis=1), writer)
    for unit in ("=cmd()", "<b>", "a\u202eb", "x" * 129):
        table = long_frame(recent[["WTI"]]).assign(unit=unit)
        yield Case(f"in {unit}", "bad", "unit", text_file(table.to_csv(index=False)))
    text = recent[["WTI"]].to_csv()
    for name, (content, words) in {
        "two prices": (f"{text}2020-01-02,1\n2020-01-02,2\n", "expected one price for 2020-01-02"),
        "infinite": (f"{text}2020-01-02,inf\n", "finite price"),
        "overflow": (f"{text}2020-01-02,1e300\n", "magnitude between"),
        "subnormal": (f"{text}2020-01-02,5e-324\n", "magnitude between"),
        "words": (f"{text}2020-01-02,n.a.\n", "expected a price"),
        "no such day": (f"{text}2020-02-30,1\n", "2020-02-30"),
        "year 20200": (f"{text}20200-02-03,1\n", "date"),
        "no date": (f"{text},1\n", "date"),
        "missing cell": (f"{text}2020-01-02\n", "field"),
        "extra cell": (f"{text}2020-01-02,1,2\n", "field"),
        "header only": ("date,WTI\n", "rows"),
        "empty": ("", "empty"),
        "blank": ("\n\n", "blank"),
        "binary": ("\0\1\2\3", "NUL"),
        "HTML": ("<html><body>Forbidden</body></html>", "HTML"),
        "same name twice": ("date,WTI,WTI\n2020-01-02,1,2\n", "'WTI' twice"),
        "two time zones": (f"{text}2020-01-02T00:00:00Z,1\n", "time zone"),
    }.items():
        yield Case(name, "bad", words, text_file(content))
    for name, frame, words in (
        ("no dates", recent.reset_index(drop=True), "date"),
        ("no rows", recent.iloc[:0], "rows"),
        ("booleans", recent > 50, "bool"),
        ("infinite", recent.replace(recent.iloc[3, 0], np.inf), "finite"),
        ("missing day", recent.set_axis(pd.DatetimeIndex([pd.NaT, *recent.index[1:]], name="date")), "date"),
    ):
        yield Case(f"frame: {name}", "bad", words, lambda folder, frame=frame: frame)


def _case(name: str, category: Any, expected: str, frame: Frame, writer: Callable[[Frame, Path], Source]) -> Case:
    return Case(f"{name}, {writer.__name__}", category, expected, lambda folder: writer(frame, folder))


def _parquet(frame: Frame) -> bytes:
    buffer = io.BytesIO()
    frame.assign(date=pd.to_datetime(frame["date"])).to_parquet(buffer)
    return buffer.getvalue()


def _holidays(frame: Frame) -> Frame:
    """Each symbol without every 50th price, on days of its own."""
    days = np.arange(len(frame))[:, None]
    return frame.mask((days + np.arange(frame.shape[1]) * 17) % 50 == 20)


def _set(rows: slice, value: Callable[[Frame], Any], column: str = "WTI") -> Change:
    """Replace prices of one symbol; `value` gets those that are replaced."""

    def change(frame: Frame) -> Frame:
        changed = frame.copy()
        changed.loc[changed.index[rows], column] = value(frame[column].iloc[rows])
        return changed

    return change


def _add_row(day: str) -> Change:
    return lambda frame: pd.concat(
        [frame, frame.iloc[[-1]].set_axis(pd.DatetimeIndex([day], name="date"))]
    ).sort_index()


def _twin(name: str) -> Change:
    return lambda frame: frame.assign(**{name: frame["BRENT"] * 1.01})


def _slip(factor: float, rows: int) -> Change:
    return _set(slice(300, 300 + rows), lambda prices: prices * factor)


def _every(step: int) -> Change:
    return lambda frame: frame.assign(WTI=frame["WTI"].where(np.arange(len(frame)) % step == 0))


CHANGES: dict[str, tuple[Change, ...]] = {
    "decimal slip": tuple(_slip(factor, rows) for factor in SLIPS for rows in (1, 3)),
    "jump": tuple(_set(slice(300, None), lambda p, factor=factor: p * factor) for factor in (100, 42, 0.01, 10)),
    "frozen": tuple(_set(slice(-rows, None), lambda p: p.iloc[0]) for rows in (5, 7, 20)),
    "stale": tuple(_set(slice(200, 200 + rows), lambda p: p.iloc[0]) for rows in (10, 30)),
    "ended": tuple(_set(slice(-rows, None), lambda p: np.nan) for rows in (15, 40, 200)),
    "nonpositive": tuple(_set(slice(200, 201), lambda p, value=value: value) for value in (0.0, -37.63)),
    "no positive price": (lambda f: f.assign(WTI=0.0),),
    "signed prices": (lambda f: f.assign(WTI=-f["WTI"]),),
    "constant price": (lambda f: f.assign(WTI=50.0),),
    "short history": (lambda f: f.tail(100), lambda f: f.tail(2), lambda f: f.tail(1)),
    "mostly missing": (_every(3),),
    "gap": (lambda f: f.drop(f.index[200:230]), _set(slice(200, 230), lambda p: np.nan)),
    "weekend": (_add_row("2026-08-22"), _add_row("2026-08-23")),
    "future": (_add_row("2199-04-19"),),
    "unsorted": (lambda f: pd.concat([f.iloc[300:], f.iloc[:300]]), lambda f: f.iloc[::-1]),
    "similar symbols": tuple(_twin(name) for name in ("wti", "W TI", "\uff37\uff34\uff29", "WT\u0406")),
    "identical columns": (lambda f: f.assign(COPY=f["WTI"]), lambda f: f.assign(COPY=f["HENRY_HUB"])),
    "no overlap": (
        lambda f: f.assign(
            WTI=f["WTI"].where(np.arange(len(f)) < 300),
            BRENT=f["BRENT"].where(np.arange(len(f)) >= 300),
            HENRY_HUB=f["HENRY_HUB"].where(np.arange(len(f)) >= 300),
        ),
    ),
    "looks like returns": (lambda f: np.log(f).diff().iloc[1:], lambda f: 100 * f.pct_change().iloc[1:]),
    "extreme price": (_set(slice(200, 201), lambda p: 1e12), lambda f: f.assign(WTI=f["WTI"] * 1e9)),
    "few changes": (lambda f: f.assign(WTI=f["WTI"].where(np.arange(len(f)) % 4 == 0).ffill()),),
    "repeated block": (lambda f: _set(slice(400, 440), lambda p: f["WTI"].iloc[100:140].to_numpy())(f),),
    "vendor rolls": (lambda f: f.rename(columns={"WTI": "CL=F"}),),
}
