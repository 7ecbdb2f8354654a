"""ops.indicators: every one against TA-Lib on real prices, and what holds for all of them."""

import inspect
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from torchcommodity.ops import indicators

talib = pytest.importorskip("talib")
abstract = pytest.importorskip("talib.abstract")
nasdaq, sp500 = pytest.importorskip("arch.data.nasdaq"), pytest.importorskip("arch.data.sp500")

NAMES = [name for name in indicators.__all__ if name.islower() and name != "lookback"]
PRICES = ("open", "high", "low", "close", "volume", "real", "real0", "real1", "periods")
MATYPES = (1, 2, 3, 4, 5, 6, 8, 9, 12, 13)
INDEXES = {"maxindex", "minindex", "minmaxindex"}
STEPS = INDEXES | {"fractal", "percentrank", "aroon", "aroonosc"}  # no gradient: they only count

# beside the defaults
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
    "ultosc": ({"timeperiod1": 20, "timeperiod2": 5, "timeperiod3": 9},),
}


def panels_of(name: str) -> list[str]:
    return [key for key in inspect.signature(getattr(indicators, name)).parameters if key in PRICES]


def settings_of(name: str) -> dict[str, Any]:
    parameters = inspect.signature(getattr(indicators, name)).parameters.values()
    return {p.name: p.default for p in parameters if p.name not in PRICES and p.name != "mode"}


def rows_of_settings() -> list[Any]:
    rows = []
    for name in NAMES:
        more = SETTINGS.get(name, ())
        if "timeperiod" in settings_of(name):
            more += ({"timeperiod": 3}, {"timeperiod": 8})
        if name == "ma":
            more += tuple({"matype": matype} for matype in MATYPES)
        rows += [pytest.param(name, chosen, id=f"{name}-{chosen}") for chosen in ({}, *more)]
    return rows


@pytest.fixture(scope="module")
def prices() -> dict[str, Tensor]:
    """Panels (T, 2) of two stock indices; `real` is the close."""
    frames = [market.load()[-700:] for market in (nasdaq, sp500)]
    columns = ("Open", "High", "Low", "Close", "Volume")
    found = {name.lower(): torch.tensor(np.stack([frame[name] for frame in frames], 1)).double() for name in columns}
    periods = 2 + torch.arange(700).remainder(29).double().unsqueeze(-1).expand(700, 2)
    return found | {"real": found["close"], "real0": found["high"], "real1": found["low"], "periods": periods}


def inputs(name: str, prices: dict[str, Tensor]) -> list[Tensor]:
    return [prices[key] for key in panels_of(name)]


def outputs(name: str, *panels: Tensor, **settings: Any) -> tuple[Tensor, ...]:
    found = getattr(indicators, name)(*panels, **settings)
    return found if isinstance(found, tuple) else (found,)


def small(name: str) -> dict[str, Any]:
    """Short periods, so that few rows are enough."""
    found = settings_of(name)
    order = {"fastperiod": 2, "slowperiod": 3, "timeperiod3": 4, "maxperiod": 3, "rightbars": 1, "leftbars": 1}
    periods = [key for key in found if "period" in key or "bars" in key]
    return {key: order.get(key, 2) for key in periods}


@pytest.mark.parametrize(("name", "settings"), rows_of_settings())
def test_equal_to_talib(name: str, settings: dict[str, Any], prices: dict[str, Tensor]) -> None:
    panels = inputs(name, prices)
    ours = outputs(name, *panels, **settings)
    warm_up = indicators.lookback(name, **settings)
    assert warm_up == abstract.Function(name.upper(), **(settings_of(name) | settings)).lookback
    for n in range(2):
        theirs = getattr(talib, name.upper())(*(panel[:, n].numpy() for panel in panels), **settings)
        for expected, found in zip(theirs if isinstance(theirs, tuple) else (theirs,), ours, strict=True):
            assert (found[:warm_up].isnan() | (found[:warm_up] < 0)).all()
            rows, expected = found[warm_up:, n].numpy(), expected[warm_up:]
            if name in INDEXES:  # of several equal ones TA-Lib names now the oldest, now the newest: compare the prices
                rows, expected = panels[0][rows, n].numpy(), panels[0][expected, n].numpy()
            np.testing.assert_allclose(rows, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("name", NAMES)
def test_arguments_are_talibs(name: str) -> None:
    info = abstract.Function(name.upper()).info
    assert settings_of(name) == dict(info["parameters"])
    found = getattr(indicators, name)(*(torch.rand(3, 1) for _ in panels_of(name)))
    assert list(getattr(found, "_fields", ("real",))) == info["output_names"] or name in ("maxindex", "minindex")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in STEPS])
def test_gradients(name: str, prices: dict[str, Tensor]) -> None:
    settings = small(name)
    rows = indicators.lookback(name, **settings) + 5
    unit = {"volume": prices["volume"][:rows, :1].mean()}
    panels = [prices[key][:rows, :1] / unit.get(key, prices["close"][0, 0]) for key in panels_of(name)]
    if name == "mavp":
        panels[1] = prices["periods"][:rows, :1]
    panels[0].requires_grad_()
    for panel in panels[1:]:
        panel.requires_grad_(name != "mavp")

    def known(*panels: Tensor) -> Tensor:
        return torch.cat([y[~y.isnan()] for y in outputs(name, *panels, **settings)])

    assert known(*panels).numel() > 0
    assert torch.autograd.gradcheck(known, panels, fast_mode=True)
    assert torch.autograd.gradgradcheck(known, panels, fast_mode=True, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_a_hole_does_not_poison_the_tail(name: str, prices: dict[str, Tensor]) -> None:
    settings, hole, rows = small(name), 20, 60
    panels = [panel[:rows].clone() for panel in inputs(name, prices)]
    whole = outputs(name, *panels, **settings)
    panels[0][hole, 0] = torch.nan
    panels[-1][hole + 1, 0] = torch.inf
    given = [panel.requires_grad_() for panel in panels]
    found = outputs(name, *given, **settings)
    for y, before in zip(found, whole):
        assert torch.equal(y[:, 1], before[:, 1]) or torch.equal(y[:, 1].nan_to_num(9), before[:, 1].nan_to_num(9))
        assert torch.equal(y[:hole, 0].nan_to_num(9), before[:hole, 0].nan_to_num(9))
        assert y[hole + 15 :, 0].isfinite().all()
    smooth = [y for y in found if y.is_floating_point() and y.requires_grad]
    if smooth:
        upstream = [torch.where(y.isnan(), torch.nan, 1.0).to(y) for y in smooth]
        gradients = torch.autograd.grad(smooth, given, upstream, allow_unused=True)
        assert all(gradient.isfinite().all() for gradient in gradients if gradient is not None)
        assert gradients[0] is None or gradients[0][hole, 0] == 0


@pytest.mark.parametrize("name", NAMES)
def test_no_look_ahead(name: str, prices: dict[str, Tensor]) -> None:
    rows, settings = 60, small(name)
    panels = [panel[:rows] for panel in inputs(name, prices)]
    changed = [torch.cat([panel[:40], panel[40:].flip(0) * 3]) for panel in panels]
    for one, other in zip(outputs(name, *panels, **settings), outputs(name, *changed, **settings)):
        assert torch.equal(one[:40].nan_to_num(9), other[:40].nan_to_num(9))


@pytest.mark.parametrize("name", NAMES)
def test_many_series_are_each_by_itself(name: str, prices: dict[str, Tensor]) -> None:
    settings = small(name)
    panels = [torch.stack([panel[:50], panel[50:100]]) for panel in inputs(name, prices)]  # (2, T, 2)
    together = outputs(name, *panels, **settings)
    for batch in range(2):
        for n in range(2):
            alone = outputs(name, *(panel[batch, :, n : n + 1] for panel in panels), **settings)
            for one, all_of_them in zip(alone, together):
                found = all_of_them[batch, :, n : n + 1]
                assert torch.allclose(one.double(), found.double(), rtol=1e-12, equal_nan=True)


@pytest.mark.parametrize("name", NAMES)
def test_single_and_half_precision(name: str, prices: dict[str, Tensor]) -> None:
    panels = [panel / (1e6 if key == "volume" else 1) for key, panel in zip(panels_of(name), inputs(name, prices))]
    exact = outputs(name, *panels)
    for y, expected in zip(outputs(name, *(panel.float() for panel in panels)), exact):
        if y.is_floating_point():
            assert y.dtype == torch.float32
            scale = expected[expected.isfinite()].abs().max()
            assert (y.double() - expected).nan_to_num(0).abs().max() <= 2e-3 * scale
        assert torch.equal(y.isnan(), expected.isnan())
    for y in outputs(name, *(panel[:50].bfloat16() for panel in panels)):
        assert y.dtype == torch.bfloat16 or not y.is_floating_point()


@pytest.mark.parametrize("name", NAMES)
def test_few_rows(name: str, prices: dict[str, Tensor]) -> None:
    for rows in (0, 1, 2):
        found = outputs(name, *(panel[:rows] for panel in inputs(name, prices)))
        assert all(y.shape == (rows, 2) for y in found)
