"""Symbols whose prices cannot be used are refused in words by everything that would use them."""

from collections.abc import Callable
from typing import Any

import pytest

from torchcommodity import data, forecast, portfolio, scenarios, training

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
    if value < 0 and operation in ("fit", "backtest"):
        words = "constant"  # negative prices are those of a spread, which must change
    with pytest.raises(ValueError, match=f"^{operation}: .*{words}.*BRENT; select others with .*--symbols"):
        OPERATIONS[operation](with_prices(value))


def test_fit_refuses_prices_whose_scale_is_not_known() -> None:
    panel = with_prices(50.0).to_pandas()
    panel.loc[panel.index[-2:], "BRENT"] = 60.0
    with pytest.raises(ValueError, match=r"^fit: .* must change at least 10 times.*; got BRENT 1; select others with"):
        forecast.fit(panel)
    assert training.usable_symbols(panel) == ("WTI",)
    kinds = {f.kind: f.value for f in data.to_panel(panel).findings if f.symbol == "BRENT"}
    assert "with 1 changes; a scale needs 10" in kinds["constant price"]


def test_predict_refuses_constant_prices() -> None:
    forecaster = forecast.fit(data.embedded(["WTI", "BRENT"]).between("2012-01-01", "2018-12-31"))
    with pytest.raises(ValueError, match=r"predict: .* must vary; got constant prices for BRENT"):
        forecaster.predict(with_prices(50.0))
