"""`ops.indicators`: each indicator against TA-Lib on real prices, and the properties that all of them share."""

import inspect
from typing import Any

import numpy as np
import pytest
import torch
from indicator_cover import COVER, NO_FORMULAS, formulas, statements
from torch import Tensor

from torchcommodity.ops import indicators

talib = pytest.importorskip("talib")
abstract = pytest.importorskip("talib.abstract")
nasdaq, sp500 = pytest.importorskip("arch.data.nasdaq"), pytest.importorskip("arch.data.sp500")

FORMULAS = [name for name in indicators.__all__ if name.islower() and name != "lookback"]
TRANSFORMS = {name.lower() for name in talib.get_function_groups()["Math Transform"]}  # test_indicator_transforms.py
NAMES = [name for name in FORMULAS if not (name.startswith("cdl") or name in TRANSFORMS)]  # cdl: test_candlesticks.py
OF_ENGINE = [name for name in COVER if name in NAMES]
PRICES = ("open", "high", "low", "close", "volume", "real", "real0", "real1", "periods")
MATYPES = (1, 2, 3, 4, 5, 6, 8, 9, 12, 13)
INDEXES = {"maxindex", "minindex", "minmaxindex"}
STEP_FUNCTIONS = INDEXES | {"fractal", "percentrank", "aroon", "aroonosc", "ht_trendmode"}  # not differentiable
DIFFERENTIABLE = [name for name in OF_ENGINE if name not in STEP_FUNCTIONS]

# in addition to the defaults
SETTINGS: dict[str, tuple[dict[str, Any], ...]] = {
    "adosc": ({"fastperiod": 10, "slowperiod": 3},),
    "bbands": ({"nbdevup": 1.0, "nbdevdn": 3.0}, {"matype": 1}, {"matype": 3}),
    "kc": ({"timeperiod": 5, "atrperiod": 20},),
    "macd": ({"fastperiod": 30, "slowperiod": 10},),
    "macdext": ({"fastmatype": 1, "slowmatype": 1, "signalmatype": 1}, {"fastmatype": 2, "slowmatype": 5}),
    "mavp": ({"matype": 1}, {"matype": 6}),
    "ppo": ({"fastperiod": 26, "slowperiod": 12, "matype": 0},),
    "sar": ({"acceleration": 0.05, "maximum": 0.1}, {"acceleration": 0.3}),
    "sarext": (
        {"startvalue": 5000.0, "offsetonreverse": 0.01},
        {"startvalue": -5000.0, "accelerationmaxshort": 0.01, "accelerationlong": 0.05},
    ),
    "stoch": ({"slowk_matype": 1, "slowd_matype": 2},),
    "stochrsi": ({"fastd_matype": 1},),
    "percentile": ({"percentile": 12.5}, {"percentile": 100.0}),
    "supertrend": ({"timeperiod": 2, "multiplier": 0.1},),
    "ultosc": ({"timeperiod1": 20, "timeperiod2": 5, "timeperiod3": 9},),
}


def panel_names(name: str) -> list[str]:
    return [key for key in inspect.signature(getattr(indicators, name)).parameters if key in PRICES]


def default_settings(name: str) -> dict[str, Any]:
    parameters = inspect.signature(getattr(indicators, name)).parameters.values()
    return {p.name: p.default for p in parameters if p.name not in PRICES and p.name != "mode"}


def indicator_settings() -> list[Any]:
    params = []
    for name in NAMES:
        extra = SETTINGS.get(name, ())
        if "timeperiod" in default_settings(name):
            extra += ({"timeperiod": 3}, {"timeperiod": 8})
        if name == "ma":
            extra += tuple({"matype": matype} for matype in MATYPES)
        params += [pytest.param(name, settings, id=f"{name}-{settings}") for settings in ({}, *extra)]
    return params


@pytest.fixture(scope="module")
def prices() -> dict[str, Tensor]:
    """Panels (T, 2) of two stock indices; `real` is the close."""
    frames = [market.load()[-700:] for market in (nasdaq, sp500)]
    columns = ("Open", "High", "Low", "Close", "Volume")
    panels = {name.lower(): torch.tensor(np.stack([frame[name] for frame in frames], 1)).double() for name in columns}
    periods = 2 + torch.arange(700).remainder(29).double().unsqueeze(-1).expand(700, 2)
    return panels | {"real": panels["close"], "real0": panels["high"], "real1": panels["low"], "periods": periods}


def inputs(name: str, prices: dict[str, Tensor]) -> list[Tensor]:
    return [prices[key] for key in panel_names(name)]


def outputs(name: str, *panels: Tensor, **settings: Any) -> tuple[Tensor, ...]:
    result = getattr(indicators, name)(*panels, **settings)
    return result if isinstance(result, tuple) else (result,)


def short_periods(name: str) -> dict[str, Any]:
    """Settings for which few rows are enough."""
    settings = default_settings(name)
    values = {"fastperiod": 2, "slowperiod": 3, "timeperiod3": 4, "maxperiod": 3, "rightbars": 1, "leftbars": 1}
    periods = [key for key in settings if "period" in key or "bars" in key]
    return {key: values.get(key, 2) for key in periods}


@pytest.mark.parametrize(("name", "settings"), indicator_settings())
def test_indicator_equals_talib(name: str, settings: dict[str, Any], prices: dict[str, Tensor]) -> None:
    panels = inputs(name, prices)
    results = outputs(name, *panels, **settings)
    warm_up = indicators.lookback(name, **settings)
    assert warm_up == abstract.Function(name.upper(), **(default_settings(name) | settings)).lookback
    for n in range(2):
        reference = getattr(talib, name.upper())(*(panel[:, n].numpy() for panel in panels), **settings)
        for expected, result in zip(reference if isinstance(reference, tuple) else (reference,), results, strict=True):
            assert (result[:warm_up].isnan() | (result[:warm_up] < 0)).all()
            rows, expected = result[warm_up:, n].numpy(), expected[warm_up:]
            if name in INDEXES:  # of several equal values TA-Lib returns any row: compare the prices
                rows, expected = panels[0][rows, n].numpy(), panels[0][expected, n].numpy()
            np.testing.assert_allclose(rows, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


OTHERWISE = {"dx", "adx", "adxr", "ht_dcphase", "ht_sine", "ht_trendmode"}  # without movement, as their docstrings say


@pytest.mark.parametrize("name", [name for name in NAMES if name not in INDEXES])
def test_indicator_of_a_market_that_does_not_move_equals_talib(name: str, prices: dict[str, Tensor]) -> None:
    close, volume = prices["close"][:120, :1], prices["volume"][:120, :1]
    flat = {key: torch.full_like(close, 10.0) for key in PRICES} | {"periods": prices["periods"][:120, :1]}
    ranges = flat | {"high": flat["close"] + 1, "low": flat["close"] - 1, "volume": volume}
    idle = {key: panel[:120, :1] for key, panel in prices.items()} | {"volume": torch.zeros_like(volume)}
    for market, is_moving in ((flat, False), (ranges, False), (idle, True)):
        if name in OTHERWISE and not is_moving:
            continue
        panels = inputs(name, market)
        results, warm_up = outputs(name, *panels), indicators.lookback(name)
        reference = getattr(talib, name.upper())(*(panel[:, 0].numpy() for panel in panels))
        for expected, result in zip(reference if isinstance(reference, tuple) else (reference,), results, strict=True):
            expected = np.where(expected == 0, np.nan, expected) if name == "vwap" else expected
            np.testing.assert_allclose(result[warm_up:, 0].numpy(), expected[warm_up:], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_indicator_arguments_equal_talib(name: str) -> None:
    info = abstract.Function(name.upper()).info
    assert default_settings(name) == dict(info["parameters"])
    result = getattr(indicators, name)(*(torch.rand(3, 1) for _ in panel_names(name)))
    assert list(getattr(result, "_fields", ("real",))) == info["output_names"] or name in (
        "maxindex",
        "minindex",
        "ht_trendmode",
    )


def test_cover_has_every_statement_and_what_is_no_formula() -> None:
    assert {name for name in FORMULAS if name not in formulas()} == {*NO_FORMULAS}
    cover = [name for name in COVER if name not in NO_FORMULAS]
    assert set().union(*map(statements, cover)) == set().union(*map(statements, formulas()))
    differentiable = [name for name in formulas() if name in NAMES and name not in STEP_FUNCTIONS]
    expected = set().union(*map(statements, differentiable))
    assert set().union(*(statements(name) for name in DIFFERENTIABLE if name not in NO_FORMULAS)) == expected


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * name.startswith("ht_")) for name in DIFFERENTIABLE]
)
def test_indicator_gradients(name: str, prices: dict[str, Tensor]) -> None:
    settings = short_periods(name)
    rows = indicators.lookback(name, **settings) + 5
    scale = {"volume": prices["volume"][:rows, :1].mean()}
    panels = [prices[key][:rows, :1] / scale.get(key, prices["close"][0, 0]) for key in panel_names(name)]
    if name == "mavp":
        panels[1] = prices["periods"][:rows, :1]
    panels[0].requires_grad_()
    for panel in panels[1:]:
        panel.requires_grad_(name != "mavp")

    def valid_outputs(*panels: Tensor) -> Tensor:
        return torch.cat([y[~y.isnan()] for y in outputs(name, *panels, **settings)])

    assert valid_outputs(*panels).numel() > 0
    assert torch.autograd.gradcheck(valid_outputs, panels, fast_mode=True)
    assert torch.autograd.gradgradcheck(valid_outputs, panels, fast_mode=True, atol=1e-4)


@pytest.mark.parametrize("name", OF_ENGINE)
def test_indicator_recovers_after_missing_rows(name: str, prices: dict[str, Tensor]) -> None:
    settings, gap = short_periods(name), 20
    warm_up = indicators.lookback(name, **settings)
    panels = [panel[: 60 + warm_up].clone() for panel in inputs(name, prices)]
    complete = outputs(name, *panels, **settings)
    panels[0][gap, 0] = torch.nan
    panels[-1][gap + 1, 0] = torch.inf
    inputs_ = [panel.requires_grad_() for panel in panels]
    results = outputs(name, *inputs_, **settings)
    for y, expected in zip(results, complete):
        assert torch.equal(y[:, 1].nan_to_num(9), expected[:, 1].nan_to_num(9))
        assert torch.equal(y[:gap, 0].nan_to_num(9), expected[:gap, 0].nan_to_num(9))
        assert y[max(gap, warm_up) + 15 :, 0].isfinite().all()
    differentiable = [y for y in results if y.is_floating_point() and y.requires_grad]
    if differentiable:
        upstream = [torch.where(y.isnan(), torch.nan, 1.0).to(y) for y in differentiable]
        gradients = torch.autograd.grad(differentiable, inputs_, upstream, allow_unused=True)
        assert all(gradient.isfinite().all() for gradient in gradients if gradient is not None)
        assert gradients[0] is None or gradients[0][gap, 0] == 0


@pytest.mark.parametrize("name", OF_ENGINE)
def test_indicator_has_no_look_ahead(name: str, prices: dict[str, Tensor]) -> None:
    settings = short_periods(name)
    first = 40 + indicators.lookback(name, **settings)  # row that changes
    panels = [panel[: first + 20] for panel in inputs(name, prices)]
    changed = [torch.cat([panel[:first], panel[first:].flip(0) * 3]) for panel in panels]
    for x, y in zip(outputs(name, *panels, **settings), outputs(name, *changed, **settings)):
        assert torch.equal(x[:first].nan_to_num(9), y[:first].nan_to_num(9))


@pytest.mark.parametrize("name", OF_ENGINE)
def test_indicator_series_are_independent(name: str, prices: dict[str, Tensor]) -> None:
    settings = short_periods(name)
    panels = [torch.stack([panel[:80], panel[80:160]]) for panel in inputs(name, prices)]  # (2, T, 2)
    batched = outputs(name, *panels, **settings)
    for batch in range(2):
        for n in range(2):
            single = outputs(name, *(panel[batch, :, n : n + 1] for panel in panels), **settings)
            for x, y in zip(single, batched):
                assert torch.allclose(x.double(), y[batch, :, n : n + 1].double(), rtol=1e-12, equal_nan=True)


@pytest.mark.parametrize("name", OF_ENGINE)
def test_indicator_single_and_half_precision(name: str, prices: dict[str, Tensor]) -> None:
    panels = [panel / (1e6 if key == "volume" else 1) for key, panel in zip(panel_names(name), inputs(name, prices))]
    exact = outputs(name, *panels)
    for y, expected in zip(outputs(name, *(panel.float() for panel in panels)), exact):
        if y.is_floating_point():
            assert y.dtype == torch.float32
            scale = expected[expected.isfinite()].abs().max()
            assert (y.double() - expected).nan_to_num(0).abs().max() <= 2e-3 * scale
        assert torch.equal(y.isnan(), expected.isnan())
    for y in outputs(name, *(panel[:50].bfloat16() for panel in panels)):
        assert y.dtype == torch.bfloat16 or not y.is_floating_point()


@pytest.mark.parametrize("name", OF_ENGINE)
def test_indicator_few_rows(name: str, prices: dict[str, Tensor]) -> None:
    for rows in (0, 1, 2):
        results = outputs(name, *(panel[:rows] for panel in inputs(name, prices)))
        assert all(y.shape == (rows, 2) for y in results)


@pytest.mark.parametrize("name", OF_ENGINE)
def test_indicator_live_updates_equal_batch(name: str, prices: dict[str, Tensor]) -> None:
    operator, settings = getattr(indicators, name), short_periods(name)
    rows = 30 + indicators.lookback(name, **settings)
    panels = [panel[:rows].clone() for panel in inputs(name, prices)]
    panels[0][12, 0] = torch.nan
    state = operator.start(*(panel[:7] for panel in panels), **settings)
    parts = [outputs(name, *(panel[:7] for panel in panels), **settings)]
    for first, last in ((7, 13), (13, 13), (13, rows - 1)):
        state, y = operator.update(state, *(panel[first:last] for panel in panels))
        parts.append(y if isinstance(y, tuple) else (y,))
    _, y = operator.step(state, *(panel[rows - 1] for panel in panels))
    parts.append(tuple(x.unsqueeze(0) for x in (y if isinstance(y, tuple) else (y,))))
    for y, expected in zip(zip(*parts), outputs(name, *panels, **settings)):
        assert torch.equal(torch.cat(y).nan_to_num(9), expected.nan_to_num(9))
