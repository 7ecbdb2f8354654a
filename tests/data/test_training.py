"""Prices compared with those of training: what is unlike them is found, real prices of later years are not."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from torch_opkit import MetadataTensor
from torchcommodity import data

SYMBOLS = ("WTI", "BRENT", "HENRY_HUB", "PROPANE_MB")


@pytest.fixture(scope="module")
def panel() -> data.Panel:
    return data.embedded(SYMBOLS).between("2010-01-01", "2018-12-31").drop_empty_rows()


@pytest.fixture(scope="module")
def training(panel: data.Panel) -> tuple[data.PriceStatistics, ...]:
    return data.price_statistics(panel.between(None, "2016-12-31"))


def with_prices(panel: data.Panel, prices: np.ndarray) -> data.Panel:
    return replace(panel, values=MetadataTensor(torch.from_numpy(prices)))


def findings(panel: data.Panel, training: tuple[data.PriceStatistics, ...]) -> list[tuple[str, str]]:
    prices = panel.values.plain().numpy()
    found = data.inspect_prices(prices, panel.dates, panel.symbols, training=training)
    return [(finding.kind, finding.symbol) for finding in found]


def swap(prices: np.ndarray, rows: slice, i: int, j: int) -> None:
    prices[rows, [i, j]] = prices[rows, [j, i]]


CORRUPTIONS = {
    "times 100": (lambda x: x.__setitem__((-1, 0), x[-1, 0] * 100), ("jump", "WTI")),
    "times 0.01": (lambda x: x.__setitem__((-1, 1), x[-1, 1] / 100), ("outside training range", "BRENT")),
    "up a half": (lambda x: x.__setitem__((-1, 0), x[-1, 0] * 1.5), ("large move", "WTI")),
    "negative": (lambda x: x.__setitem__((-1, 3), -x[-1, 3]), ("nonpositive", "PROPANE_MB")),
    "copied": (lambda x: x.__setitem__((slice(None), 1), x[:, 0]), ("identical columns", "BRENT")),
    "frozen": (lambda x: x.__setitem__((slice(-10, None), 2), x[-10, 2]), ("frozen", "HENRY_HUB")),
    "swapped": (lambda x: swap(x, slice(None), 0, 1), ("swapped columns", "WTI")),
    "swapped levels": (lambda x: swap(x, slice(None), 1, 2), ("swapped columns", "BRENT")),
    "swapped last row": (lambda x: swap(x, slice(-1, None), 0, 1), ("swapped columns", "WTI")),
}  # fmt: skip


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_inspect_prices_finds_a_corruption(
    panel: data.Panel, training: tuple[data.PriceStatistics, ...], corruption: str
) -> None:
    recent = panel.between("2015-06-01")
    assert findings(recent, training) == []
    corrupt, expected = CORRUPTIONS[corruption]
    prices = recent.values.plain().numpy().copy()
    corrupt(prices)
    assert expected in findings(with_prices(recent, prices), training)


def test_compare_with_training_finds_shifted_dates(
    panel: data.Panel, training: tuple[data.PriceStatistics, ...]
) -> None:
    recent = panel.between("2015-06-01", "2018-12-28")
    shifted = replace(recent, values=recent.values.plain()[1:], dates=recent.dates[:-1])
    (finding,) = data.compare_with_training(shifted, training)
    assert (finding.kind, finding.date, finding.value) == (
        "shifted dates",
        "2016-12-29",
        "the prices of 2016-12-30 in training",
    )


def test_compare_without_training_judges_moves_only(panel: data.Panel) -> None:
    assert data.compare_with_training(panel, ()) == ()
    prices = panel.values.plain().numpy().copy()
    prices[-1, 0] *= 1.5
    assert [finding.kind for finding in data.compare_with_training(with_prices(panel, prices), ())] == ["large move"]


def test_findings_of_a_symbol_do_not_depend_on_the_others() -> None:
    panel = data.embedded(data.embedded_symbols()).between("2008-01-01", "2012-12-31").drop_empty_rows()
    random, reported = np.random.default_rng(0), 0
    for _ in range(20):
        prices = panel.values.plain().numpy().copy()
        for column in range(0, prices.shape[1], 2):
            row = int(random.integers(100, len(prices) - 100))
            block = slice(row, row + int(random.integers(1, 30)))
            kind = random.integers(5)
            prices[block, column] = [prices[row, column], np.nan, 7 * prices[row, column], 1e10, 0][kind]
            if kind == 4:
                prices[block, column] = prices[block.start - 60 : block.stop - 60, column]
        together = data.inspect_prices(prices, panel.dates, panel.symbols)
        for column, symbol in enumerate(panel.symbols):
            alone = data.inspect_prices(prices[:, [column]], panel.dates, [symbol])
            found = [finding for finding in together if finding.symbol == symbol and finding.kind != "ended"]
            assert found == [finding for finding in alone if finding.symbol == symbol]
            reported += bool(found)
    assert reported > 60
