"""Words of other forecasting libraries get a hint in one line."""

import copy
import pickle

import pytest

from torchcommodity import backtest, data, fit, predict
from torchcommodity.forecast import Forecaster


@pytest.fixture(scope="module")
def prices() -> data.Panel:
    return data.embedded(["WTI"]).between("2012-01-01", "2018-12-31")


@pytest.fixture(scope="module")
def forecaster(prices: data.Panel) -> Forecaster:
    return fit(prices, horizons=[5, 21])


@pytest.mark.parametrize(
    ("word", "value", "hint"),
    [("h", 12, "horizons="), ("horizon", 12, "horizons="), ("fh", [1], "horizons="), ("level", [80, 95], "levels="),
     ("quantiles", [0.1], "levels="), ("freq", "B", "nothing: the frequency is that of the dates"),
     ("n_windows", 3, "first_year="), ("random_state", 0, "seed=")],
)  # fmt: skip
def test_keyword_of_another_library_names_the_one_that_stands_here(prices, word, value, hint):
    for function in (fit, backtest):
        with pytest.raises(TypeError) as error:
            function(prices, **{word: value})
        assert f"{function.__name__}() got an unexpected keyword argument {word!r}; here it is {hint}" in str(
            error.value
        )


def test_keyword_that_no_library_has_is_rejected_as_python_does(prices):
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'horizonz'"):
        fit(prices, horizonz=[5])


def test_predict_says_what_it_needs(forecaster, prices):
    with pytest.raises(
        TypeError, match=r"predict\(\) missing 1 required positional argument: 'prices', a table of prices"
    ):
        forecaster.predict()
    for call in (forecaster.predict, lambda *x, **y: predict(forecaster, *x, **y)):
        with pytest.raises(TypeError, match=r"unexpected keyword argument 'h'; here it is horizons= of fit"):
            call(prices, h=5)


def test_attribute_of_another_library_names_the_one_that_stands_here(forecaster, prices):
    forecast = forecaster.predict(prices)
    with pytest.raises(
        AttributeError, match=r"'Forecast' object has no attribute 'median'; here it is quantile\(0.5, "
    ):
        forecast.median()
    assert forecast.quantile(0.5, horizon=21).notna().all()
    with pytest.raises(
        AttributeError, match=r"no attribute 'predict_interval'; here it is predict\(prices\)\.quantile"
    ):
        forecaster.predict_interval(prices)
    assert not hasattr(forecast, "colour")
    assert copy.deepcopy(forecaster).horizons == pickle.loads(pickle.dumps(forecaster)).horizons == (5, 21)


def test_levels_in_percent_are_refused_with_those_of_the_interval(prices):
    with pytest.raises(ValueError, match=r"got 80; an interval of 80 % has the levels 0.1 and 0.9$"):
        fit(prices, levels=[80, 95])
