"""targets: cumulative log-returns against their definition."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torchcommodity.data import target_rows, targets

NAN = float("nan")


def column(*prices: float) -> torch.Tensor:
    return torch.tensor(prices, dtype=torch.double)[:, None]


def test_targets_start_and_end_at_positive_prices() -> None:
    prices = column(50.0, 55.0, NAN, -37.63, 44.0, 66.0)
    expected = torch.tensor([55 / 50, 44 / 55, NAN, NAN, 66 / 44, NAN]).log()
    torch.testing.assert_close(targets(prices, [1])[:, 0, 0].float(), expected, equal_nan=True)
    expected = torch.tensor([66 / 50, NAN, NAN, NAN, NAN, NAN]).log()
    torch.testing.assert_close(targets(prices, [3])[:, 0, 0].float(), expected, equal_nan=True)


def test_targets_end_with_each_series() -> None:
    prices = torch.cat([column(1.0, 2.0, NAN, 4.0, NAN, NAN), column(1.0, 2.0, NAN, 4.0, 8.0, 8.0)], 1)
    ended, whole = targets(prices, [1, 2]).exp().log2().round(decimals=9).unbind(2)
    assert ended.nan_to_num(-9).tolist() == [[1, 2], [1, -9], [-9, -9], [-9, -9], [-9, -9], [-9, -9]]
    assert whole.nan_to_num(-9).tolist() == [[1, 2], [1, 2], [-9, -9], [1, 1], [0, -9], [-9, -9]]


@given(data=st.data())
def test_targets_do_not_depend_on_rows_on_which_only_other_symbols_trade(data: st.DataObject) -> None:
    rows = data.draw(st.integers(2, 12))
    price = st.sampled_from([NAN, 0.0, -1.0, 1.0, 2.0, 5.0])
    own = torch.tensor(data.draw(st.lists(price, min_size=rows, max_size=rows)), dtype=torch.double)
    inserted = sorted(data.draw(st.lists(st.integers(0, rows), max_size=8)))
    other = torch.arange(1.0, rows + len(inserted) + 1, dtype=torch.double)
    spread = torch.from_numpy(np.insert(own.numpy(), inserted, np.nan))
    old_rows = torch.from_numpy(np.insert(np.ones(rows, dtype=bool), inserted, False))
    union = targets(torch.stack([spread, other], 1), [1, 3])[old_rows, :, 0]
    torch.testing.assert_close(union, targets(own[:, None], [1, 3])[..., 0], rtol=0, atol=0, equal_nan=True)


def test_target_rows_are_where_targets_end() -> None:
    prices = column(1.0, NAN, 2.0, 0.0, 8.0, NAN)
    assert target_rows(prices, [1, 2])[..., 0].tolist() == [[2, 4], [-1, -1], [4, -1], [-1, -1], [-1, -1], [-1, -1]]


def test_targets_of_a_prefix_are_those_of_the_whole_or_nan() -> None:
    prices = column(1.0, 2.0, NAN, 4.0, 8.0, NAN, NAN, 3.0)
    whole = targets(prices, [1, 3])
    for stop in range(len(prices)):
        prefix = targets(prices[:stop], [1, 3])
        known = prefix.isfinite()
        assert torch.equal(prefix[known], whole[:stop][known])


def test_targets_horizon_longer_than_the_panel_and_symbol_without_prices() -> None:
    assert targets(column(1.0, 2.0), [5]).isnan().all()
    assert targets(column(NAN, -1.0, 0.0), [1]).isnan().all()
    assert targets(torch.zeros(0, 2), [1]).shape == (0, 1, 2)


@pytest.mark.parametrize(
    ("prices", "horizons", "message"),
    [
        (column(1.0, 2.0), "1w", "horizons must be a list of numbers of rows.*; got horizons='1w'"),
        (column(1.0, 2.0), ["1w"], "horizons must be a list of numbers of rows"),
        (column(1.0, 2.0), 5, "horizons must be a list of numbers of rows.*; got horizons=5"),
        (column(1.0, 2.0), [-5], r"horizons must be .* >= 1; got horizons=\[-5\]"),
        (column(1.0, 2.0), [0], "horizons must be .* >= 1"),
        (column(1.0, 2.0), [], "horizons must be at least one"),
        ([1.0, 2.0], [1], "prices must be a Tensor; got prices='list'"),
        (torch.ones(3), [1], r"prices must be \(T, N\); got prices \(3,\)"),
    ],
)
@pytest.mark.parametrize("function", [targets, target_rows])
def test_targets_reject(function: Any, prices: Any, horizons: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^{function.__name__}: {message}"):
        function(prices, horizons)
