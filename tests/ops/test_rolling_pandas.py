"""Windows and exponential averages against pandas: real series, holes, constants, high levels, long series."""

from collections.abc import Callable
from typing import Any

import arch.data.nasdaq
import arch.data.sp500
import arch.data.vix
import arch.data.wti
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from torchcommodity import ops

Formula = tuple[Callable[..., Tensor], Callable[..., Any]]

ROLLING: dict[str, Formula] = {
    "mean": (ops.rolling_mean, lambda r: r.mean()),
    "sum": (ops.rolling_sum, lambda r: r.sum()),
    "var": (ops.rolling_var, lambda r: r.var()),
    "std": (ops.rolling_std, lambda r: r.std()),
    "skew": (ops.rolling_skew, lambda r: r.skew()),
    "kurt": (ops.rolling_kurt, lambda r: r.kurt()),
    "min": (ops.rolling_min, lambda r: r.min()),
    "max": (ops.rolling_max, lambda r: r.max()),
    "median": (ops.rolling_median, lambda r: r.median()),
    "quantile": (lambda x, w, **s: ops.rolling_quantile(x, w, 0.9, **s), lambda r: r.quantile(0.9)),
    "rank": (ops.rolling_rank, lambda r: r.rank()),
}
EWM: dict[str, Formula] = {
    "mean": (ops.ewm_mean, lambda e: e.mean()),
    "var": (ops.ewm_var, lambda e: e.var()),
    "std": (ops.ewm_std, lambda e: e.std()),
    "biased": (lambda x, **s: ops.ewm_var(x, bias=True, **s), lambda e: e.var(bias=True)),
}
RULES = [{"adjust": a, "ignore_na": i} for a in (True, False) for i in (True, False)]


def closes(frame: pd.DataFrame) -> Any:
    return frame[frame.columns[0] if len(frame.columns) == 1 else "Close"].to_numpy(dtype=float)[-600:]


@pytest.fixture(scope="module")
def real() -> Tensor:
    # (T, 4): oil, two indices and volatility, the last 600 days, with holes in oil
    series = [arch.data.wti, arch.data.sp500, arch.data.nasdaq, arch.data.vix]
    panel = np.stack([closes(module.load()) for module in series], 1)
    panel[40:47, 0] = panel[300, 0] = np.nan
    return torch.tensor(panel)


def framed(x: Tensor) -> pd.DataFrame:
    return pd.DataFrame(x.double().numpy())


def same(found: Tensor, expected: Any, rtol: float = 1e-8, atol: float = 1e-10) -> None:
    np.testing.assert_allclose(found.double().numpy(), np.asarray(expected), rtol=rtol, atol=atol)


@pytest.mark.parametrize("least", [None, 5])
@pytest.mark.parametrize("name", ROLLING)
def test_rolling_on_real_prices(real: Tensor, name: str, least: int | None) -> None:
    ours, theirs = ROLLING[name]
    same(ours(real, 21, min_periods=least), theirs(framed(real).rolling(21, least)))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", EWM)
def test_ewm_on_real_prices(real: Tensor, name: str, rule: dict[str, bool]) -> None:
    ours, theirs = EWM[name]
    for speed in ({"span": 20}, {"com": 3.0, "min_periods": 7}, {"halflife": 5.0}, {"alpha": 0.3}):
        same(ours(real, **speed, **rule), theirs(framed(real).ewm(**speed, **rule)), 1e-7)


def test_matrices_on_real_prices(real: Tensor) -> None:
    shape = (*real.shape, real.shape[-1])
    same(ops.rolling_covariance(real, 30, min_periods=10), framed(real).rolling(30, 10).cov().to_numpy().reshape(shape))
    same(ops.ewm_covariance(real, span=20), framed(real).ewm(span=20).cov().to_numpy().reshape(shape), 1e-7)
    found, expected = ops.ewm_correlation(real, span=20), framed(real).ewm(span=20).corr().to_numpy().reshape(shape)
    same(found[5:], expected[5:], 1e-6, 1e-8)


def test_beta_and_zscore_on_real_prices(real: Tensor) -> None:
    y, x = framed(real[:, :1])[0], framed(real[:, 1:2])[0]
    both = y.notna() & x.notna()
    rolling = x.where(both).rolling(30, 10)
    same(ops.rolling_beta(real[:, :1], real[:, 1:2], 30, min_periods=10)[:, 0], rolling.cov(y) / rolling.var(), 1e-7)
    frame = framed(real)
    same(ops.rolling_zscore(real, 30), (frame - frame.rolling(30).mean()) / frame.rolling(30).std())


def spread(rows: Any) -> float:
    known = rows[np.isfinite(rows)]
    return float(np.var(known, ddof=1)) if len(known) > 1 else np.nan


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_holes_constants_and_windows(data: st.DataObject) -> None:
    values = st.sampled_from([np.nan, np.inf, 1.1, 1.1, -2.5, 1e6, 1e6 + 1e-2])
    rows = data.draw(st.lists(values, min_size=1, max_size=40))
    window = data.draw(st.integers(1, 12))
    least = data.draw(st.none() | st.integers(0, window))
    x = torch.tensor(rows, dtype=torch.double).unsqueeze(-1)
    for name in ("mean", "sum", "min", "max", "median", "quantile", "rank"):
        ours, theirs = ROLLING[name]
        same(ours(x, window, min_periods=least), theirs(framed(x).rolling(window, least)), 1e-9, 1e-8)
    exact = framed(x).replace(np.inf, np.nan).rolling(window, window if least is None else least)
    two_pass = exact.apply(
        lambda r: np.var(r[np.isfinite(r)], ddof=1) if np.isfinite(r).sum() > 1 else np.nan, raw=True
    )
    same(ops.rolling_var(x, window, min_periods=least), two_pass, 1e-8, 1e-8)
    rule = {"adjust": data.draw(st.booleans()), "ignore_na": data.draw(st.booleans())}
    same(ops.ewm_mean(x, span=5, **rule), framed(x).ewm(span=5, **rule).mean(), 1e-10)


def test_a_constant_does_not_move() -> None:
    x = torch.full((300, 1), 1.1, dtype=torch.double)
    x[:50] = 1e9 * torch.rand(50, 1, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    still = slice(60 + 50, None)
    assert (ops.rolling_var(x, 60)[still] == 0).all()
    assert (ops.rolling_std(x, 60)[still] == 0).all()
    for formula in (ops.rolling_skew, ops.rolling_kurt, ops.rolling_zscore):
        assert formula(x, 60)[still].isnan().all()


@pytest.mark.parametrize("dtype", [torch.float, torch.double])
def test_a_million_rows_at_a_level_of_a_million(dtype: torch.dtype) -> None:
    noise = 1e-2 if dtype == torch.double else 1.0
    x = (1e6 + noise * torch.randn(1_000_000, 1, dtype=torch.double, generator=torch.Generator().manual_seed(0))).to(
        dtype
    )
    tail = framed(x).iloc[-3000:]
    for name in ("mean", "var", "std", "median", "max"):
        ours, theirs = ROLLING[name]
        same(ours(x, 60)[-2900:], theirs(tail.rolling(60)).iloc[-2900:], 1e-5)
    same(ops.ewm_mean(x, span=20)[-2000:], tail.ewm(span=20).mean().iloc[-2000:], 1e-7)
    same(ops.ewm_std(x, span=20)[-2000:], tail.ewm(span=20).std().iloc[-2000:], 1e-5)


def test_a_halflife_is_learned(real: Tensor) -> None:
    x = real[:30].log()
    halflife = torch.tensor([2.0, 3.0, 4.0, 5.0], dtype=torch.double, requires_grad=True)
    for formula in (ops.ewm_mean, ops.ewm_var):
        for rule in RULES:
            call = lambda h, f=formula, r=rule: f(x, halflife=h, **r).nan_to_num(0)  # noqa: E731
            assert torch.autograd.gradcheck(call, halflife, atol=1e-4, rtol=1e-3)
    assert torch.autograd.gradgradcheck(lambda h: ops.ewm_mean(x, halflife=h), halflife, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("name", ["skew", "kurt", "std", "sum"])
def test_formulas_have_their_gradient(real: Tensor, name: str) -> None:
    x = real[35:60].log().requires_grad_()
    formula = ROLLING[name][0]
    few = lambda x: formula(x, 7, min_periods=5).nan_to_num(0)  # noqa: E731
    assert torch.autograd.gradcheck(few, x)
    loss = formula(x, 7, min_periods=5)
    (gradient,) = torch.autograd.grad(loss, x, torch.full_like(loss, torch.nan).where(loss.isnan(), 1))
    assert gradient.isfinite().all()


@pytest.mark.parametrize(
    "formula",
    [
        lambda x: ops.rolling_covariance(x, 5, min_periods=3),
        lambda x: ops.rolling_zscore(x, 5, min_periods=3),
        lambda x: ops.rolling_beta(x[:, :1], x[:, 1:], 5, min_periods=3),
        lambda x: ops.ewm_std(x, span=5),
        lambda x: ops.ewm_covariance(x, span=5),
        lambda x: ops.ewm_correlation(x, span=5),
    ],
)
def test_matrices_have_their_gradient_and_no_look_ahead(real: Tensor, formula: Callable[[Tensor], Tensor]) -> None:
    x = real[35:55, :3].log()
    assert torch.autograd.gradcheck(lambda x: formula(x).nan_to_num(0), x.clone().requires_grad_())
    changed = x.clone()
    changed[12:] = changed[12:].flip(0) * 1e3
    changed[15] = torch.nan
    assert torch.equal(formula(x)[:12].nan_to_num(9), formula(changed)[:12].nan_to_num(9))
    leaf = x.clone().requires_grad_()
    y = formula(leaf)
    (gradient,) = torch.autograd.grad(y, leaf, torch.full_like(y, torch.nan).where(y.isnan(), 1))
    assert gradient.isfinite().all()
