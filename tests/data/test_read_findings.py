"""`read` of suspicious files: which findings are reported, and how the data is treated."""

import numpy as np
import pytest

from torchcommodity import data

WIDE = "date,WTI\n2020-04-17,18.27\n"
LONG = "date,symbol,close\n2020-04-17,WTI,18.27\n"
EQUAL_PRICES = "".join(f"2020-01-{day:02d},5\n" for day in (2, 3, 6, 7, 8, 9, 10, 13, 14, 15))

# name: (file, expected prices (T,) or None, findings as (kind, symbol, date, line, count))
DOUBTFUL = {
    "unsorted": (
        "date,A\n2020-04-20,2\n2020-04-17,1\n2020-04-21,3\n",
        [1, 2, 3],
        [("unsorted", "", "2020-04-17", 3, 1)],
    ),
    "unsorted_long": (
        "date,symbol,close\n2020-04-20,A,2\n2020-04-17,B,9\n2020-04-17,A,1\n2020-04-20,B,9\n",
        None,
        [("unsorted", "", "2020-04-17", 4, 1)],
    ),
    "duplicate": ("date,A\n2020-04-17,1\n2020-04-17,1\n", [1], [("duplicate", "", "2020-04-17", 3, 1)]),
    "duplicate_long": (LONG + "2020-04-17,WTI,18.27\n", [18.27], [("duplicate", "WTI", "2020-04-17", 3, 1)]),
    "split_row": ("date,A\n2020-04-17,\n2020-04-17,1\n", [1], [("split row", "", "2020-04-17", 3, 1)]),
    "negative": (WIDE + "2020-04-20,-37.63\n", [18.27, -37.63], [("nonpositive", "WTI", "2020-04-20", 3, 1)]),
    "zero": (WIDE + "2020-04-20,0\n", [18.27, 0], [("nonpositive", "WTI", "2020-04-20", 3, 1)]),
    "weekend": (WIDE + "2020-04-18,18\n", [18.27, 18], [("weekend", "", "2020-04-18", 3, 1)]),
    "future": (WIDE + "2199-04-19,18\n", [18.27, 18], [("future", "", "2199-04-19", 3, 1)]),
    "gap": (
        "date,A\n2020-03-02,1\n2020-03-03,2\n2020-03-04,3\n2020-04-01,4\n",
        [1, 2, 3, 4],
        [("gap", "A", "2020-04-01", 5, 1)],
    ),
    "gap_10": ("date,A\n2020-03-02,1\n2020-03-03,2\n2020-03-17,3\n", [1, 2, 3], []),
    "stale": ("date,A\n" + EQUAL_PRICES, [5] * 10, [("stale", "A", "2020-01-02", 2, 1)]),
    "stale_9": ("date,A\n" + EQUAL_PRICES.rsplit("\n", 2)[0], [5] * 9, []),
    "jump": (WIDE + "2020-04-20,1827\n", [18.27, 1827], [("jump", "WTI", "2020-04-20", 3, 1)]),
    "jump_down": (WIDE + "2020-04-20,0.1\n", [18.27, 0.1], [("jump", "WTI", "2020-04-20", 3, 1)]),
    "empty_column": ("date,A,B\n2020-04-17,1,\n", [1], [("empty column", "B", "", 0, 1)]),
    "empty_row": ("date,A\n2020-04-17,1\n2020-04-20,.\n", [1, np.nan], [("empty row", "", "2020-04-20", 3, 1)]),
    "ignored_column": (
        "date,symbol,close,volume\n2020-04-17,A,1,x\n",
        [1],
        [("ignored column", "", "", 1, 1)],
    ),
    "generic_name": ("date,price\n2020-04-17,1\n", [1], [("generic name", "price", "", 1, 1)]),
}


@pytest.mark.parametrize("name", DOUBTFUL)
def test_read_reports_and_treats_suspicious_data(name, tmp_path):
    body, prices, expected = DOUBTFUL[name]
    path = tmp_path / "prices.csv"
    path.write_text(body)
    panel = data.read(path, publisher="EIA")
    findings = [f for f in panel.findings if f.kind not in ("short history", "ended")]  # of a few old prices
    assert [(f.kind, f.symbol, f.date, f.line, f.count) for f in findings] == expected
    assert all(f.treatment == data.TREATMENTS[f.kind] and f.value for f in panel.findings)
    if prices is not None:
        np.testing.assert_array_equal(panel.values[:, 0].numpy(), np.array(prices, dtype=float))
