"""`series.operator`: tracing, programs, errors, own recurrences, live updates."""

import copy
import pickle
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

import torch_opkit as opkit
from torchcommodity.ops import indicators, series
from torchcommodity.ops.series import Period, change, count, ema, lag, positive_part, previous, recur, sma, std, where


class Pair(NamedTuple):
    fast: Tensor
    slow: Tensor


@series.operator
def zscore(x: Tensor, window: int = 20) -> Tensor:
    return (x - sma(x, window)) / std(x, window)


@series.operator
def pair(high: Tensor, low: Tensor, timeperiod: Period = 4) -> Pair:
    return Pair(ema((high + low) / 2, timeperiod), lag(low, 5))


@series.operator(dtype=torch.int64)
def streak(x: Tensor) -> Tensor:
    """Rows since the last fall."""
    return recur(lambda days: where(change(x) >= 0, days + 1, 0), 0.0)


@series.operator
def smoothed(x: Tensor, weight: float = 0.3) -> Tensor:
    """An average that moves faster upwards, seeded with the first value."""
    first = count(x) == 1
    return recur(lambda y: where(first, x, y + weight * (x - y) + 0.1 * positive_part(x - y)), 0.0)


@pytest.fixture
def x() -> Tensor:
    generator = torch.Generator().manual_seed(0)
    panel = 50 + torch.randn(2, 40, 3, dtype=torch.double, generator=generator).cumsum(-2)
    panel[0, 7, 1] = panel[1, 0, 0] = panel[1, 20:22, 2] = torch.nan
    return panel


def test_operator_equals_formula_on_complete_panel(x: Tensor) -> None:
    panel = x[:1, 8:]
    windows = panel.unfold(-2, 5, 1)
    expected = (panel[:, 4:] - windows.mean(-1)) / windows.std(-1, correction=0)
    torch.testing.assert_close(zscore(panel, 5)[:, 4:], expected)
    assert zscore(panel, 5)[:, :4].isnan().all()


def test_own_recurrence_skips_missing_rows(x: Tensor) -> None:
    expected = torch.full_like(x, torch.nan)
    for b, n in torch.cartesian_prod(torch.arange(2), torch.arange(3)).tolist():
        y = None
        for t, price in enumerate(x[b, :, n].tolist()):
            if price == price:
                y = price if y is None else y + 0.3 * (price - y) + 0.1 * max(price - y, 0)
                expected[b, t, n] = y
    torch.testing.assert_close(smoothed(x), expected, equal_nan=True)


def test_outputs_are_missing_together_and_integers_have_a_fill(x: Tensor) -> None:
    high, low = pair(x, x - 1)[0], pair(x, x - 1).slow
    assert torch.equal(high.isnan(), low.isnan())
    days = streak(x)
    assert days.dtype == torch.int64
    assert (days[x.isnan()] == -1).all()
    assert days.max() > 1


def test_program_is_shared_between_equal_statements() -> None:
    @series.operator
    def twice(x: Tensor) -> Tensor:
        return sma(x, 3) * 2 + sma(x, 3)

    assert twice.program().count("window_mean") == 1


def test_loop_holds_only_what_needs_it() -> None:
    @series.operator
    def mixed(x: Tensor) -> Tensor:
        y = recur(lambda y: y + 0.1 * (sma(x, 3) - y), 0.0)
        return y * 2 - previous(x)

    names = [line.split()[0] for line in mixed.program().split("; ")]
    loop = names[names.index("feedback") : names.index("assign") + 1]
    assert loop == ["feedback", "subtract", "multiply", "add", "assign"]


def test_lookback_is_found_from_the_formula() -> None:
    assert zscore.lookback() == 19
    assert pair.lookback(timeperiod=9) == 8
    assert smoothed.lookback() == 0
    assert indicators.adx.lookback(timeperiod=10) == indicators.lookback("adx", timeperiod=10) == 19


def test_operator_inside_a_formula_is_part_of_it(x: Tensor) -> None:
    @series.operator
    def nested(x: Tensor) -> Tensor:
        return zscore(zscore(x, 5), window=3)

    torch.testing.assert_close(nested(x), zscore(zscore(x, 5), 3), equal_nan=True)


def test_operator_is_copied_and_pickled_by_name() -> None:
    assert copy.deepcopy(indicators.rsi) is indicators.rsi
    assert pickle.loads(pickle.dumps(indicators.rsi)) is indicators.rsi


@pytest.mark.parametrize("splits", [[1] * 40, [0, 7, 33], [39, 1], [13, 13, 14]])
def test_any_split_gives_the_bits_of_one_call(x: Tensor, splits: list[int]) -> None:
    period = torch.tensor([2.5, 4.0, 7.0], dtype=torch.double)
    for panel in (x, x.float()):
        state, parts = pair.start(panel[:, :0], panel[:, :0] - 1, timeperiod=period), []
        for rows in panel.split(splits, -2):
            before = {name: value.clone() for name, value in state.items()}
            state, (fast, slow), old = *pair.update(state, rows, rows - 1), state
            assert all(torch.equal(old[name].nan_to_num(9), value.nan_to_num(9)) for name, value in before.items())
            parts.append(torch.stack([fast, slow]))
        whole = torch.stack(pair(panel, panel - 1, period))
        assert torch.equal(torch.cat(parts, -2).nan_to_num(9), whole.nan_to_num(9))


def test_a_step_takes_rows_without_time_axis(x: Tensor) -> None:
    state = pair.start(x[:, :-1], x[:, :-1] - 1)
    _, (fast, slow) = pair.step(state, x[:, -1], x[:, -1] - 1)
    assert torch.equal(fast, pair(x, x - 1).fast[:, -1])
    assert torch.equal(slow, pair(x, x - 1).slow[:, -1])


def branch(x: Tensor) -> Tensor:
    return x if x > 0 else -x


def panel_last(window: int, x: Tensor) -> Tensor:
    return sma(x, window)


def no_panel(window: int) -> int:
    return window


def torch_function(x: Tensor) -> Tensor:
    return torch.softmax(x, -1)


def nested_loop(x: Tensor) -> Tensor:
    return recur(lambda y: recur(lambda z: z + y, 0.0) + y + x, 0.0)  # type: ignore[no-any-return]


def wrong_values(x: Tensor) -> Tensor:
    return recur(lambda a, b: a + b + x, 0.0, 0.0)  # type: ignore[no-any-return]


ERRORS = [
    (lambda x: series.operator(branch)(x), TypeError, "must not branch on a Series.*use where"),
    (lambda x: series.operator(panel_last), TypeError, "the first parameters, at least one, must be annotated Tensor"),
    (lambda x: series.operator(no_panel), TypeError, "the first parameters, at least one, must be annotated Tensor"),
    (
        lambda x: series.operator(torch_function)(x),
        TypeError,
        "must use the functions of ops.series; got torch's softmax",
    ),
    (
        lambda x: series.operator(wrong_values)(x),
        ValueError,
        "as many values as there are initial ones, 2; got returned=1",
    ),
    (lambda x: sma(x, 3), TypeError, "window_mean: call it inside a formula.*got operands=.*Tensor"),
    (lambda x: zscore(x, 0), ValueError, "zscore: window must be >= 1; got window=0"),
    (lambda x: zscore(x, 2.0), TypeError, "zscore: window must be an int; got window=2.0"),
    (lambda x: zscore(x, size=3), TypeError, "zscore: .*size.*; its signature is"),
    (lambda x: pair(x), TypeError, "pair: missing .*low"),
    (lambda x: zscore(x.long()), TypeError, "zscore: x must be floating-point"),
    (lambda x: pair(x, x[:, 1:]), ValueError, "pair: high, low must have one shape"),
    (lambda x: zscore.lookback(size=3), TypeError, "settings of zscore must be among"),
    (lambda x: pair.lookback(timeperiod=torch.tensor(3.0)), TypeError, "pair.lookback: settings must be numbers"),
    (
        lambda x: pair.step(zscore.start(x), x[:, 0], x[:, 0]),
        ValueError,
        "pair.step: state must be the dict of tensors that pair.start returned.*got operator='zscore'",
    ),
    (
        lambda x: zscore.step({}, x[:, 0]),
        TypeError,
        "zscore.step: state must be the dict of tensors that zscore.start returned; got keys=",
    ),
    (
        lambda x: zscore.step(zscore.start(x), x[0, 0]),
        ValueError,
        r"zscore.step: each row must be torch.float64 \(2, 3\), as the history was",
    ),
    (lambda x: pair.step(pair.start(x, x), x[:, 0]), ValueError, "pair.step: rows of 2 panels are expected"),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS, ids=[message[:30] for _, _, message in ERRORS])
def test_errors_in_words(call, error, message, x: Tensor) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=message):
        call(x)


CONTRACTS = ["adx", "stochrsi", "obv", "kama", "correl", "macd", "cci"]  # together they use most statements


@pytest.mark.parametrize("name", ["zscore", *(pytest.param(name, marks=pytest.mark.slow) for name in CONTRACTS)])
def test_contract_of_a_formula(name: str) -> None:
    formula = globals().get(name) or getattr(indicators, name)
    generator = torch.Generator().manual_seed(0)
    close = 50 + torch.randn(2, 45, 3, dtype=torch.double, generator=generator).cumsum(-2)
    panels = {"high": close + 1, "low": close - 1, "close": close, "volume": close * 7, "real1": close.flip(0)}
    sample = tuple(panels.get(key, close) for key in formula.panel_names)
    report = opkit.check(formula, samples=[sample], compiled=False)
    assert report.ok, str(report)
