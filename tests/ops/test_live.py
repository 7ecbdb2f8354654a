"""Live updates of `torchcommodity.ops`: the bits of one call on all rows, however they are split."""

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from torchcommodity import ops

ROWS = 30
PRICES = 50 + torch.randn(ROWS, 5, generator=torch.Generator().manual_seed(0)).cumsum(0)
RETURNS = torch.randn(ROWS, 5, generator=torch.Generator().manual_seed(1))
GAPS = PRICES.where(torch.rand(PRICES.shape, generator=torch.Generator().manual_seed(2)) > 0.15, torch.nan)
MISSING = RETURNS.where(GAPS.isfinite(), torch.nan)
CORRELATION = ops.rolling_correlation(RETURNS, 7)
TRANSITION = torch.tensor([[0.9, 0.1], [0.2, 0.8]]).unsqueeze(-1)
ALPHA = torch.linspace(0.1, 0.5, 5)
GARCH = {"omega": ALPHA, "alpha": 0.1, "beta": 0.8, "gamma": 0.05}

Call = tuple[Callable[..., Any], tuple[Tensor, ...], dict[str, Any], tuple[int, ...]]
WINDOWS: list[Call] = [
    (function, (GAPS,), {"window": window, "min_periods": 3}, (-2,) * (1 + (function is ops.rolling_extrema)))
    for function in (
        ops.rolling_mean, ops.rolling_sum, ops.rolling_var, ops.rolling_std, ops.rolling_skew, ops.rolling_kurt,
        ops.rolling_min, ops.rolling_max, ops.rolling_extrema, ops.rolling_median, ops.rolling_rank, ops.rolling_zscore,
    )
    for window in (7, 100)
]  # fmt: skip
EXPONENTIAL: list[Call] = [
    (function, (GAPS,), {"alpha": alpha, "adjust": adjust, "ignore_na": ignore_na, "min_periods": 3}, (axis,))
    for function, alpha, axis in (
        (ops.ewm_mean, ALPHA, -2),
        (ops.ewm_var, ALPHA, -2),
        (ops.ewm_std, 0.2, -2),
        (ops.ewm_covariance, 0.2, -3),
        (ops.ewm_correlation, 0.2, -3),
    )
    for adjust in (True, False)
    for ignore_na in (True, False)
]
CALLS: list[Call] = [
    *WINDOWS,
    *EXPONENTIAL,
    (ops.rolling_quantile, (GAPS,), {"window": 7, "quantile": 0.3, "min_periods": 2}, (-2,)),
    (ops.window_sum, (PRICES,), {"window": 7}, (-2,)),
    (ops.rolling_beta, (MISSING, RETURNS), {"window": 7, "min_periods": 4}, (-2,)),
    (ops.rolling_covariance, (MISSING,), {"window": 7, "min_periods": 4}, (-3,)),
    (ops.rolling_correlation, (MISSING,), {"window": 7, "min_periods": 4}, (-3,)),
    (ops.rolling_correlation, (MISSING,), {"window": 7, "min_periods": 4, "packed": True}, (-2,)),
    (ops.correlation_regime, (CORRELATION,), {"threshold": 0.3, "lag": 4}, (-1, -1)),
    (ops.riskmetrics_variance, (MISSING,), {"halflife": 11.0}, (-2,)),
    (ops.log_returns, (GAPS,), {}, (-2,)),
    (ops.linear_recurrence, (RETURNS.sigmoid(), RETURNS), {"initial": torch.ones(5)}, (-2,)),
    (ops.garch_variance, (MISSING,), GARCH, (-2,)),
    (ops.egarch_variance, (MISSING,), GARCH, (-2,)),
    (ops.ccc_correlation, (MISSING,), {"min_periods": 3}, (-3,)),
    (ops.dcc_correlation, (MISSING,), {"a": 0.05, "b": 0.9, "target": torch.eye(5)}, (-3,)),
    (
        ops.hamilton_filter,
        (MISSING,),
        {"mean": torch.zeros(2, 1), "variance": torch.tensor([[0.5], [4.0]]), "transition": TRANSITION},
        (-3, -2),
    ),
]


def run_live(call: Call, seed: int) -> tuple[int, list[Tensor]]:
    """Number of rows of the history, and the results for the rows after it."""
    function, panels, settings, axes = call
    generator, time = random.Random(seed), -3 if function is ops.correlation_regime else -2
    first = row = generator.choice([0, 1, ROWS // 2])
    state, results = function.start(*(x.narrow(time, 0, row) for x in panels), **settings), []
    while row < ROWS:
        count = min(generator.choice([0, 1, 1, 1, 2, 9]), ROWS - row)
        if count == 1:
            state, y = function.step(state, *(x.select(time, row) for x in panels))
            results.append([part.unsqueeze(axis) for part, axis in zip(tree_leaves(y), axes, strict=True)])
        else:
            state, y = function.update(state, *(x.narrow(time, row, count) for x in panels))
            results.append(tree_leaves(y))
        row += count
    return first, [torch.cat(parts, axis) for parts, axis in zip(zip(*results, strict=True), axes, strict=True)]


def assert_same_bits(call: Call, seed: int) -> None:
    function, panels, settings, axes = call
    first, results = run_live(call, seed)
    for result, expected, axis in zip(results, tree_leaves(function(*panels, **settings)), axes, strict=True):
        rows = expected.narrow(axis, first, ROWS - first)
        torch.testing.assert_close(result, rows, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call[0].__name__)
def test_live_updates_have_the_bits_of_one_call(call: Call) -> None:
    for seed in range(2):
        assert_same_bits(call, seed)


@pytest.mark.parametrize("call", [CALLS[0], *EXPONENTIAL[:5], *CALLS[-6:]], ids=lambda call: call[0].__name__)
def test_live_updates_of_half_precision_have_the_bits_of_one_call(call: Call) -> None:
    function, panels, settings, axes = call
    assert_same_bits((function, tuple(x.bfloat16() for x in panels), settings, axes), seed=0)


def test_every_function_of_past_rows_has_live_updates() -> None:
    live = {name for name in ops.__all__ if hasattr(getattr(ops, name), "step")}
    assert live >= {call[0].__name__ for call in CALLS}
    assert {name for name in ops.__all__ if name.startswith(("rolling_", "ewm_"))} <= live


def test_live_updates_are_constants() -> None:
    x = PRICES.clone().requires_grad_()
    state, y = ops.rolling_mean.step(ops.rolling_mean.start(x, window=3), x[0])
    assert not y.requires_grad
    assert not any(value.requires_grad for value in state.values())


@pytest.mark.parametrize("call", [EXPONENTIAL[0], EXPONENTIAL[4], *CALLS[-5:]], ids=lambda call: call[0].__name__)
def test_live_updates_copy_their_parameters(call: Call) -> None:
    function, panels, settings, _ = call
    settings = {name: x.clone() if isinstance(x, Tensor) else x for name, x in settings.items()}
    state = function.start(*(x[:20] for x in panels), **settings)
    _, expected = function.step(state, *(x[20] for x in panels))
    for x in settings.values():
        if isinstance(x, Tensor):
            x.zero_()
    _, y = function.step(state, *(x[20] for x in panels))
    assert all(map(torch.equal, tree_leaves(y), tree_leaves(expected)))


def test_live_updates_refuse_another_state() -> None:
    state = ops.rolling_mean.start(PRICES, 3)
    expected = r"rolling_std.step: state must be the dict of tensors that rolling_std.start returned; .*'rolling_mean'"
    with pytest.raises(ValueError, match=expected):
        ops.rolling_std.step(state, PRICES[0])
    with pytest.raises(TypeError, match=r"rolling_mean.update: state must be the dict .*; got keys=\['rows'\]"):
        ops.rolling_mean.update({"rows": PRICES}, PRICES)


def test_live_updates_refuse_other_rows() -> None:
    state = ops.rolling_mean.start(PRICES, 3)
    with pytest.raises(ValueError, match=r"rolling_mean.step: each row must be torch.float32 \(5,\), as the history"):
        ops.rolling_mean.step(state, PRICES[0, :4])
    with pytest.raises(ValueError, match=r"each row must be torch.float32 \(5,\).*; got dtype='torch.float64'"):
        ops.rolling_mean.step(state, PRICES[0].double())
    with pytest.raises(
        ValueError, match=r"linear_recurrence.step: rows of 2 panels are expected, as in start; got panels=1"
    ):
        ops.linear_recurrence.step(ops.linear_recurrence.start(PRICES, PRICES), PRICES[0])
    with pytest.raises(ValueError, match="rolling_mean: window must be >= 1; got window=0"):
        ops.rolling_mean.start(PRICES, 0)
    with pytest.raises(ValueError, match=r"window_sum.start: ahead must be False"):
        ops.window_sum.start(PRICES, 3, ahead=True)
