"""`read_bars`: open, high, low, close and amounts, from files and frames, in the layouts of vendors."""

import numpy as np
import pandas as pd
import pytest

from torchcommodity import data, ops

YFINANCE = (
    "Price,Close,Close,High,High,Low,Low,Open,Open,Volume,Volume\n"
    "Ticker,CL=F,GC=F,CL=F,GC=F,CL=F,GC=F,CL=F,GC=F,CL=F,GC=F\nDate,,,,,,,,,,\n"
    "2024-01-02,70.38,2064.4,73.6,2077.8,70.1,2055.0,71.7,2063.0,293361,45\n"
    "2024-01-03,72.7,,73.2,,69.3,,70.4,,351912,\n"
)
INVESTING = (
    '"Date","Price","Open","High","Low","Vol.","Change %"\n'
    '"Jan 03, 2024","2,042.80","2,067.00","2,073.30","2,038.40","183.40K","-1.47%"\n'
    '"Jan 02, 2024","2,073.40","2,072.70","2,087.30","2,064.40","-","0.08%"\n'
)
NORGATE = (
    "Date,Open,High,Low,Close,Volume,Open Interest,Delivery Month\n"
    "20240102,71.7,73.6,70.1,70.38,293361,280001,202402\n20240103,70.4,73.2,69.3,72.7,351912,270001,202402\n"
)
LONG = (
    "date,symbol,open,high,low,close,volume\n2024-01-02,A,1,3,0.5,2,10\n2024-01-03,A,2,4,1,3,20\n"
    "2024-01-03,B,7,9,6,8,30\n"
)
nan = np.nan


def test_read_bars_of_several_tickers(tmp_path):
    path = tmp_path / "download.csv"
    path.write_text(YFINANCE)
    bars = data.read_bars(path)
    assert bars.symbols == ("CL=F", "GC=F")
    np.testing.assert_array_equal(bars.high.numpy(), [[73.6, 2077.8], [73.2, nan]])
    np.testing.assert_array_equal(bars.volume.numpy(), [[293361, 45], [351912, nan]])
    assert bars.open_interest is None
    gold = data.read_bars(path, ["GC=F"])
    np.testing.assert_array_equal(gold.low.numpy(), [[2055.0], [nan]])
    with pytest.raises(data.DataError, match="got 'HO=F'"):
        data.read_bars(path, ["HO=F"])


def test_read_bars_parses_volumes_with_letters(tmp_path):
    path = tmp_path / "Gold Futures Historical Data.csv"
    path.write_text(INVESTING)
    bars = data.read_bars(path)
    assert bars.symbols == ("Gold Futures",)
    np.testing.assert_array_equal(bars.volume.numpy(), [[nan], [183_400]])
    np.testing.assert_array_equal(bars.open.numpy(), [[2072.7], [2067.0]])


def test_read_bars_takes_open_interest_and_a_symbol_column(tmp_path):
    path = tmp_path / "CL.csv"
    path.write_text(NORGATE)
    np.testing.assert_array_equal(data.read_bars(path).open_interest.numpy(), [[280001], [270001]])
    path.write_text(LONG)
    bars = data.read_bars(path)
    np.testing.assert_array_equal(bars.open.numpy(), [[1, nan], [2, 7]])
    np.testing.assert_array_equal(bars.close.numpy(), [[2, nan], [3, 8]])


def test_read_bars_feeds_the_indicators(tmp_path):
    days = pd.bdate_range("2024-01-01", periods=40, name="Date")
    close = 70 + np.sin(np.arange(40.0))
    frame = pd.DataFrame({"Open": close, "High": close + 1, "Low": close - 1, "Close": close}, index=days)
    bars = data.read_bars(frame)
    atr = ops.indicators.atr(bars.high, bars.low, bars.close)
    assert atr.shape == (40, 1)
    assert float(atr[-1]) == pytest.approx(2.0, abs=0.3)


def test_read_bars_says_what_is_missing():
    frame = pd.DataFrame({"Close": [70.38]}, index=pd.DatetimeIndex(["2024-01-02"], name="Date"))
    with pytest.raises(data.DataError, match="columns open, high and low; got none for open in Date, Close"):
        data.read_bars(frame)
    with pytest.raises(TypeError, match="a path or a frame; got ndarray"):
        data.read_bars(np.zeros(3))
