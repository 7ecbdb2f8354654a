"""`ops.indicators`: seed modes, learnable periods, compilation, vmap and error messages."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from torchcommodity.ops import indicators

nasdaq = pytest.importorskip("arch.data.nasdaq")


@pytest.fixture(scope="module")
def bars() -> tuple[Tensor, Tensor, Tensor]:
    """High, low and close (T, 1) of a stock index."""
    frame = nasdaq.load()[-300:]
    high, low, close = (torch.tensor(frame[name].to_numpy()).unsqueeze(-1) for name in ("High", "Low", "Close"))
    return high, low, close


def recursive_average(x: np.ndarray, weight: float, seed: int) -> np.ndarray:
    """Mean of the first `seed` values, then y += weight (x - y); NaN before."""
    y = np.full(len(x), np.nan)
    y[seed - 1] = x[:seed].mean()
    for t in range(seed, len(x)):
        y[t] = y[t - 1] + weight * (x[t] - y[t - 1])
    return y


def ewm(x: pd.Series, alpha: float, n: int) -> pd.Series:
    return x.ewm(alpha=alpha, adjust=False, ignore_na=True, min_periods=n).mean()


def assert_equal(result: Tensor, expected: np.ndarray | pd.Series) -> None:
    np.testing.assert_allclose(result.squeeze(-1).numpy(), np.asarray(expected), rtol=1e-10, atol=1e-10)


def true_range(high: Tensor, low: Tensor, close: Tensor) -> np.ndarray:
    h, l, c = (panel.squeeze(-1).numpy() for panel in (high, low, close))  # noqa: E741
    return np.array([h[0] - l[0], *np.maximum(h[1:], c[:-1]) - np.minimum(l[1:], c[:-1])])


def test_ema_modes(bars: tuple[Tensor, ...]) -> None:
    close = bars[2]
    x = close.squeeze(-1).numpy()
    assert_equal(indicators.ema(close, 10), recursive_average(x, 2 / 11, 10))
    assert_equal(indicators.ema(close, 10, mode="pandas"), ewm(pd.Series(x), 2 / 11, 10))
    gaps = close.clone()
    gaps[[0, 50, 51]] = torch.nan
    assert_equal(indicators.ema(gaps, 10, mode="pandas"), ewm(pd.Series(gaps.squeeze(-1).numpy()), 2 / 11, 10).ffill())


def test_rsi_modes(bars: tuple[Tensor, ...]) -> None:
    close = bars[2]
    change = pd.Series(close.squeeze(-1).numpy()).diff()
    gain, loss = change.clip(lower=0), (-change).clip(lower=0)
    pandas = 100 * ewm(gain, 1 / 14, 14) / (ewm(gain, 1 / 14, 14) + ewm(loss, 1 / 14, 14))
    simple = 100 * gain.rolling(14).mean() / (gain.rolling(14).mean() + loss.rolling(14).mean())
    assert_equal(indicators.rsi(close, mode="pandas"), pandas)
    assert_equal(indicators.rsi(close, mode="simple"), simple)
    up, down = (recursive_average(x.to_numpy()[1:], 1 / 14, 14) for x in (gain, loss))
    assert_equal(indicators.rsi(close, mode="wilder")[1:], 100 * up / (up + down))
    assert torch.equal(indicators.rsi(close, mode="wilder").nan_to_num(9), indicators.rsi(close).nan_to_num(9))


def test_atr_modes(bars: tuple[Tensor, ...]) -> None:
    span = true_range(*bars)
    assert_equal(indicators.atr(*bars)[1:], recursive_average(span[1:], 1 / 14, 14))
    assert_equal(indicators.atr(*bars, mode="wilder"), recursive_average(span, 1 / 14, 14))
    assert_equal(indicators.atr(*bars, mode="pandas")[1:], ewm(pd.Series(span[1:]), 1 / 14, 14))
    assert_equal(indicators.atr(*bars, mode="simple")[1:], pd.Series(span[1:]).rolling(14).mean())
    assert indicators.lookback("atr", mode="wilder") == 13
    assert_equal(
        indicators.natr(*bars, mode="wilder"), 100 * recursive_average(span, 1 / 14, 14) / bars[2].squeeze(-1).numpy()
    )


@pytest.mark.parametrize("mode", ["wilder", "pandas", "simple"])
def test_adx_modes(bars: tuple[Tensor, ...], mode: str) -> None:
    high, low, _ = (panel.squeeze(-1).numpy() for panel in bars)
    up, down = np.diff(high), -np.diff(low)
    plus, minus = np.where((up > down) & (up > 0), up, 0), np.where((down > up) & (down > 0), down, 0)

    def average(x: np.ndarray, n: int = 14) -> np.ndarray:
        if mode == "wilder":
            return recursive_average(x, 1 / n, n)
        series = pd.Series(x)
        return (ewm(series, 1 / n, n) if mode == "pandas" else series.rolling(n).mean()).to_numpy()

    span = average(true_range(*bars)[1:])
    up, down = 100 * average(plus) / span, 100 * average(minus) / span
    dx = 100 * np.abs(up - down) / (up + down)
    assert_equal(indicators.plus_dm(*bars[:2], mode=mode)[1:], 14 * average(plus))
    assert_equal(indicators.plus_di(*bars, mode=mode)[1:], up)
    assert_equal(indicators.minus_di(*bars, mode=mode)[1:], down)
    assert_equal(indicators.dx(*bars, mode=mode)[1:], dx)
    assert_equal(indicators.adx(*bars, mode=mode)[14:], average(dx[13:]))


def test_macd_pandas_mode(bars: tuple[Tensor, ...]) -> None:
    close = pd.Series(bars[2].squeeze(-1).numpy())
    line = ewm(close, 2 / 13, 12) - ewm(close, 2 / 27, 26)
    signal = ewm(line, 2 / 10, 9)
    assert_equal(indicators.macd(bars[2], mode="pandas").macdsignal, signal)
    assert_equal(indicators.macd(bars[2], mode="pandas").macdhist, line - signal)


LEARNABLE = [
    ("ema", {"timeperiod": 10}),
    ("rma", {"timeperiod": 10}),
    ("t3", {"timeperiod": 4}),
    ("rsi", {"timeperiod": 14}),
    ("trix", {"timeperiod": 5}),
    ("macd", {"fastperiod": 12, "slowperiod": 26, "signalperiod": 9}),
    ("macd", {"fastperiod": 26, "slowperiod": 12, "signalperiod": 9}),
    ("atr", {"timeperiod": 14}),
    ("plus_dm", {"timeperiod": 14}),
    ("adx", {"timeperiod": 14}),
]


@pytest.mark.parametrize(("name", "periods"), LEARNABLE)
def test_indicator_learnable_period(name: str, periods: dict[str, int], bars: tuple[Tensor, ...]) -> None:
    function, panels = getattr(indicators, name), {"plus_dm": bars[:2], "atr": bars, "adx": bars}.get(name, bars[2:])

    def last_output(*values: Tensor) -> Tensor:
        outputs = function(*panels, **dict(zip(periods, values)))
        return outputs[-1] if isinstance(outputs, tuple) else outputs

    exact = function(*panels, **periods)
    exact = exact[-1] if isinstance(exact, tuple) else exact
    integers = [torch.tensor(float(n), dtype=torch.double) for n in periods.values()]
    torch.testing.assert_close(last_output(*integers), exact, rtol=1e-12, atol=1e-12, equal_nan=True)
    fractional = [(n - 0.4).requires_grad_() for n in integers]
    assert torch.autograd.gradcheck(lambda *n: last_output(*n)[-20:], fractional)
    assert torch.autograd.grad(last_output(*fractional).nansum(), fractional)[0] != 0


def test_rsi_period_per_series(bars: tuple[Tensor, ...]) -> None:
    close = bars[2].expand(-1, 3)
    result = indicators.rsi(close, torch.tensor([5.0, 14.0, 0.5], dtype=torch.double))
    assert torch.allclose(result[:, :1], indicators.rsi(bars[2], 5), equal_nan=True)
    assert torch.allclose(result[:, 1:2], indicators.rsi(bars[2], 14), equal_nan=True)
    assert result[:, 2].isnan().all()  # a period below 1


class ManyIndicators(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.period = nn.Parameter(torch.tensor(14.0))

    def forward(self, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
        return torch.stack([
            indicators.rsi(close, self.period), *indicators.macd(close), indicators.adx(high, low, close),
            indicators.kama(close), *indicators.bbands(close, matype=2), *indicators.stoch(high, low, close),
            indicators.linearreg_slope(close), indicators.correl(high, low), indicators.nvi(close, high),
            *indicators.aroon(high, low), indicators.cci(high, low, close), indicators.sar(high, low),
            *indicators.macdext(close), indicators.mavp(close, high.remainder(9), 2, 10),
        ])  # fmt: skip


class FewIndicators(ManyIndicators):
    """For Inductor, which would take a minute for all of them."""

    def forward(self, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
        return torch.stack([indicators.rsi(close, self.period), indicators.atr(high, low, close)])


@pytest.mark.slow
@pytest.mark.compile
@pytest.mark.filterwarnings("ignore")  # the compiler itself warns
@pytest.mark.parametrize(("module", "backend"), [(ManyIndicators(), "aot_eager"), (FewIndicators(), "inductor")])
def test_indicators_compile_fullgraph(module: nn.Module, backend: str, bars: tuple[Tensor, ...]) -> None:
    torch._dynamo.reset()
    panels = [panel[:80].float() for panel in bars]
    compiled = torch.compile(module, fullgraph=True, backend=backend)
    eager, result = module(*panels), compiled(*panels)
    torch.testing.assert_close(result, eager, rtol=2e-4, atol=2e-3, equal_nan=True)
    (gradient,) = torch.autograd.grad(result.nansum(), module.period)
    torch.testing.assert_close(gradient, torch.autograd.grad(eager.nansum(), module.period)[0], rtol=1e-3, atol=1e-3)


@pytest.mark.slow
@pytest.mark.export
def test_indicators_export(bars: tuple[Tensor, ...]) -> None:
    module, rows = ManyIndicators(), torch.export.Dim("rows", min=2, max=5000)
    program = torch.export.export(module, tuple(x[:80].float() for x in bars), dynamic_shapes=({0: rows},) * 3)
    panels = [panel[:120].float() for panel in bars]
    torch.testing.assert_close(program.module()(*panels), module(*panels), equal_nan=True)


def test_indicators_vmap(bars: tuple[Tensor, ...]) -> None:
    batch = [torch.stack([panel[:80], panel[80:160], panel[160:240]]) for panel in bars]
    module = ManyIndicators().double()
    result = torch.func.vmap(module, out_dims=1)(*batch)
    torch.testing.assert_close(result, module(*batch), rtol=1e-10, atol=1e-10, equal_nan=True)


def test_macd_forward_mode(bars: tuple[Tensor, ...]) -> None:
    close = bars[2][:60].contiguous()
    direction = torch.linspace(-1, 1, 60, dtype=torch.double).unsqueeze(-1)
    value, tangent = torch.func.jvp(lambda x: indicators.macd(x).macd[33:], (close,), (direction,))
    difference = (
        indicators.macd(close + 1e-4 * direction).macd[33:] - indicators.macd(close - 1e-4 * direction).macd[33:]
    )
    torch.testing.assert_close(tangent, difference / 2e-4, rtol=1e-6, atol=1e-6)
    assert value.isfinite().all()


BAD = [
    (lambda x: indicators.sma(x, 0), ValueError, "sma: timeperiod must be >= 1; got timeperiod=0"),
    (lambda x: indicators.sma(x, 2**40), ValueError, f"sma: timeperiod must be <= 100000000; got timeperiod={2**40}"),
    (
        lambda x: indicators.lookback(x),
        TypeError,
        'lookback: name must be the name of an indicator, such as "rsi"; got',
    ),
    (lambda x: indicators.rsi(x, 1), ValueError, "rsi: timeperiod must be >= 2; got timeperiod=1"),
    (lambda x: indicators.sma(x, 3.0), TypeError, "sma: timeperiod must be an int; got timeperiod=3.0"),
    (lambda x: indicators.sma(x.squeeze(-1)), ValueError, r"sma: real must be \(..., T, N\); got real \(300,\)"),
    (lambda x: indicators.sma(x.long()), TypeError, "sma: real must be floating-point"),
    (lambda x: indicators.atr(x, x, x[1:]), ValueError, r"atr: high, low, close must have one shape; got .*\(299, 1\)"),
    (lambda x: indicators.atr(x, x, x.float()), TypeError, "atr: all tensors must have one dtype"),
    (lambda x: indicators.rsi(x, mode="ema"), ValueError, "rsi: mode must be one of .*; got mode='ema'"),
    (lambda x: indicators.ma(x, matype=7), ValueError, "ma: matype must be one of .*; got matype=7"),
    (lambda x: indicators.ema(x, torch.tensor(3)), TypeError, "ema: timeperiod must be an int or a floating-point"),
    (lambda x: indicators.rsi(x, torch.tensor(3.0), mode="simple"), ValueError, "timeperiod must be an int"),
    (lambda x: indicators.bbands(x, nbdevup="2"), TypeError, "bbands: nbdevup must be a number; got nbdevup='2'"),
    (lambda x: indicators.mavp(x, x, 5, 3), ValueError, "mavp: minperiod must be <= maxperiod; got minperiod=5, max"),
    (lambda x: indicators.lookback("rsy"), ValueError, "lookback: name must be an indicator; got name='rsy'"),
    (
        lambda x: indicators.lookback("rsi", period=3),
        TypeError,
        "settings of rsi must be among .*timeperiod.*; got settings=.*period",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD, ids=[message[:30] for _, _, message in BAD])
def test_indicator_rejects_invalid_arguments(call, error, message, bars: tuple[Tensor, ...]) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=message):
        call(bars[2])


def test_indicators_of_wide_panel_equal_those_of_its_columns(bars: tuple[Tensor, ...]) -> None:
    high, low, close = (panel * torch.linspace(1, 2, 100, dtype=torch.double) for panel in bars)
    periods = torch.linspace(5, 20, 100, dtype=torch.double, requires_grad=True)

    def values_and_gradient(columns: slice) -> tuple[Tensor, ...]:
        h, l, c = (panel[:, columns] for panel in (high, low, close))  # noqa: E741
        y = torch.stack([indicators.rsi(c, periods[columns]), *indicators.stoch(h, l, c), *indicators.macd(c)])
        return y.detach().nan_to_num(9), torch.autograd.grad(y.nansum(), periods)[0][columns]

    value, gradient = values_and_gradient(slice(None))
    for columns in (slice(0, 1), slice(60, 70), slice(97, 100)):
        narrow_value, narrow_gradient = values_and_gradient(columns)
        assert torch.equal(narrow_value, value[..., columns])
        torch.testing.assert_close(narrow_gradient, gradient[columns], rtol=1e-12, atol=1e-12)


def test_mavp_of_one_candidate_is_missing_where_a_panel_is(bars: tuple[Tensor, ...]) -> None:
    close, periods = bars[2][:20], torch.full_like(bars[2][:20], 2)
    periods[10] = torch.nan
    for maxperiod in (2, 3):
        line = indicators.mavp(close, periods, 2, maxperiod, matype=1)
        assert line.isnan().squeeze(-1).nonzero().flatten().tolist() == [*range(maxperiod - 1), 10]


def test_lookback_of_indicators_that_are_no_formulas() -> None:
    assert indicators.lookback("sar", acceleration=0.05) == indicators.lookback("sarext") == 1
    assert indicators.lookback("percentile", timeperiod=9, percentile=20.0) == 8
    with pytest.raises(TypeError, match=r"settings of sar must be among .*acceleration.*; got settings=.*period"):
        indicators.lookback("sar", period=3)


@pytest.mark.parametrize("timeperiod", [5, 14, 30])
def test_line_through_a_symmetric_window_is_flat(timeperiod: int) -> None:
    half = torch.randint(1000, (timeperiod // 2, 200), generator=torch.Generator().manual_seed(0)).double()
    window = torch.cat([half, torch.full((timeperiod % 2, 200), 7.0, dtype=torch.double), half.flip(0)])
    assert (indicators.linearreg_slope(window, timeperiod)[-1] == 0).all()
