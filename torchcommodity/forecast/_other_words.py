"""Words of other forecasting libraries: what stands here in their place, in one line of the error."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

_HORIZONS = 'horizons= of fit and backtest, as in horizons=[5, 21] or ["1w", "1m"]'
_LEVELS = "levels= of fit and backtest, quantile levels: an interval of 80 % is levels=[0.1, 0.9]"
_START = "first_year= of backtest, the first calendar year that is forecast"
_PRICES = "prices, the first argument: a table of prices by date"
KEYWORDS = {  # of Nixtla, sktime, darts, GluonTS, skforecast, Prophet
    **dict.fromkeys(("h", "horizon", "fh", "n", "steps", "prediction_length", "output_chunk_length"), _HORIZONS),
    **dict.fromkeys(("level", "quantiles", "alpha", "coverage", "confidence", "interval_width", "quantile"), _LEVELS),
    **dict.fromkeys(("freq", "frequency", "season_length"), "nothing: the frequency is that of the dates"),
    **dict.fromkeys(("n_windows", "start", "step_size", "stride", "initial_window", "test_size", "cutoff"), _START),
    **dict.fromkeys(("df", "y", "series", "data", "X_df"), _PRICES),
    **dict.fromkeys(("X", "exog", "past_covariates", "future_covariates"), "covariates=, see data.to_covariates"),
    **dict.fromkeys(("num_samples", "n_samples"), "Forecaster.simulate(prices), which draws paths"),
    **dict.fromkeys(("random_state", "random_seed"), "seed="),
}
ATTRIBUTES = {
    **dict.fromkeys(("predict_interval", "predict_quantiles", "conf_int"), "predict(prices).quantile(0.9, horizon=21)"),
    **dict.fromkeys(("median", "mean"), "quantile(0.5, horizon=21), the median"),
    **dict.fromkeys(("forecast", "get_forecast"), "predict(prices)"),
    **dict.fromkeys(("pd_dataframe", "to_dataframe", "to_df", "pandas"), "to_pandas()"),
    **dict.fromkeys(("cross_validation", "historical_forecasts"), "torchcommodity.backtest(prices)"),
}


def hint_keywords(function: Function) -> Function:
    """Say in the error of an unknown keyword, or of missing prices, what stands here in its place.

    >>> @hint_keywords
    ... def fit(prices, *, horizons=None): ...
    >>> fit(None, h=5)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    TypeError: fit() got an unexpected keyword argument 'h'; here it is horizons= of fit and backtest, as in ...
    """
    parameters = inspect.signature(function).parameters

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        for name in keywords:
            if name not in parameters and name in KEYWORDS:
                problem = f"{function.__name__}() got an unexpected keyword argument {name!r}"
                raise TypeError(f"{problem}; here it is {KEYWORDS[name]}")
        missing = [name for name in list(parameters)[len(arguments) :] if name not in keywords]
        if "prices" in missing:
            rule = "a table of prices by date" + " up to the day of the forecast" * (function.__name__ == "predict")
            raise TypeError(f"{function.__name__}() missing 1 required positional argument: 'prices', {rule}")
        return function(*arguments, **keywords)

    return cast(Function, call)


def missing_attribute(value: object, name: str) -> AttributeError:
    """The error of an attribute that an object does not have, with what stands here in its place.

    >>> missing_attribute("forecast", "median").args[0]
    "'str' object has no attribute 'median'; here it is quantile(0.5, horizon=21), the median"
    """
    hint = f"; here it is {ATTRIBUTES[name]}" if name in ATTRIBUTES else ""
    return AttributeError(f"{type(value).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=value)
