"""`correlation` against pandas, and when there is none."""

import numpy as np
import pytest

from torchcommodity import data
from torchcommodity.forecast import CORRELATION_WINDOW, correlation, pairs_by_strength


def test_correlation_is_the_rolling_correlation_of_pandas() -> None:
    frame = data.embedded(["BRENT", "HENRY_HUB"]).between("2012-01-01", "2016-12-31").to_pandas().dropna()
    result = correlation(data.to_panel(frame))
    assert result is not None
    expected = np.log(frame).diff().rolling(CORRELATION_WINDOW).corr().xs("BRENT", level=1)["HENRY_HUB"]
    assert result.latest[0, 1] == pytest.approx(expected.iloc[-1])
    np.testing.assert_allclose(result.mean[CORRELATION_WINDOW + 1 :], expected.to_numpy()[CORRELATION_WINDOW + 1 :])
    assert result.latest_date == "2016-12-30"
    assert pairs_by_strength(result) == [("BRENT", "HENRY_HUB", result.latest[0, 1])]


def test_pairs_by_strength_ignores_the_sign() -> None:
    result = correlation(data.embedded())
    assert result is not None
    values = [abs(value) for _, _, value in pairs_by_strength(result)]
    assert values == sorted(values, reverse=True)
    assert pairs_by_strength(result)[1][2] < 0


def test_correlation_is_dense_in_symbols_with_prices_in_half_of_the_rows() -> None:
    result = correlation(data.embedded(["WTI", "BRENT", "ULSD_NYH"]))  # ULSD begins in 2006
    assert result is not None
    assert result.dense == ("WTI", "BRENT")


def test_correlation_needs_two_symbols_and_enough_rows() -> None:
    panel = data.embedded(["WTI", "BRENT"])
    assert correlation(panel["WTI"]) is None
    assert correlation(panel.between("2018-09-01", "2018-12-31")) is None
