"""Symbols whose prices cannot be used are refused in words by everything that would use them."""

from collections.abc import Callable
from typing import Any

import pytest

from torchcommodity import data, forecast, portfolio, scenarios

OPERATIONS: dict[str, Callable[[data.Panel], Any]] = {
    "fit": forecast.fit,
    "backtest": forecast.backtest,
    "portfolio.backtest": lambda panel: portfolio.backtest(panel, costs=[0.0]),
    "fit_scenarios": scenarios.fit_scenarios,
}


def with_prices(value: float) -> data.Panel:
    frame = data.embedded(["WTI", "BRENT"]).between("2012-01-01", "2018-12-31").to_pandas()
    return data.to_panel(frame.assign(BRENT=value))


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(("value", "words"), [(0.0, "positive"), (-5.0, "positive"), (50.0, "constant")])
def test_unusable_prices_are_refused_in_words(operation: str, value: float, words: str) -> None:
    with pytest.raises(ValueError, match=f"^{operation}: .*{words}.*BRENT; select others with .*--symbols"):
        OPERATIONS[operation](with_prices(value))


def test_predict_refuses_constant_prices() -> None:
    forecaster = forecast.fit(data.embedded(["WTI", "BRENT"]).between("2012-01-01", "2018-12-31"))
    with pytest.raises(ValueError, match=r"predict: .* must vary; got constant prices for BRENT"):
        forecaster.predict(with_prices(50.0))
