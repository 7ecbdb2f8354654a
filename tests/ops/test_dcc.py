"""DCC and CCC against loops, scipy and pandas, on GARCH residuals of real prices; panels that cannot be fitted."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor

import torch_opkit as opkit
from torchcommodity import data, ops

TARGET = torch.tensor([[1.0, 0.5, 0.25], [0.5, 1.0, -0.25], [0.25, -0.25, 1.0]])


@pytest.fixture(scope="module")
def residuals() -> Tensor:
    """Daily residuals (T, 3) of GARCH(1,1) since 2019, with the days that a price misses."""
    panel = data.embedded(["WTI", "BRENT", "HENRY_HUB"])
    prices = torch.as_tensor(panel.values).double()[torch.as_tensor(panel.dates >= np.datetime64("2019-01-01"))]
    returns = 100 * ops.log_returns(prices.where(prices > 0, torch.nan))
    fit = ops.garch_fit(returns)
    return returns / ops.garch_variance(returns, fit.omega, fit.alpha, fit.beta, fit.gamma, fit.initial).sqrt()


def loop_likelihood(z: np.ndarray, a: float, b: float) -> float:
    """Engle's likelihood of rows without missing residuals: a loop that shares nothing with the library."""
    target = z.T @ z / len(z)
    q, total = target.copy(), 0.0
    for row in z:
        scale = np.sqrt(np.diag(q))
        correlation = q / np.outer(scale, scale)
        total -= len(row) * np.log(2 * np.pi) + np.linalg.slogdet(correlation)[1]
        total -= row @ np.linalg.solve(correlation, row)
        q = (1 - a - b) * target + a * np.outer(row, row) + b * q
    return total / 2


def test_dcc_fit_matches_scipy_on_a_loop(residuals: Tensor) -> None:
    z = residuals[~residuals.isnan().any(-1)][-500:]
    fit = ops.dcc_fit(z)
    assert fit.converged, fit.messages()
    best = minimize(lambda x: -loop_likelihood(z.numpy(), *x), [0.05, 0.8], method="Nelder-Mead",
                    options={"maxfev": 60, "xatol": 1e-3, "fatol": 1e-3})  # fmt: skip
    assert fit.loglikelihood > -best.fun - 1e-3
    assert fit.loglikelihood == pytest.approx(loop_likelihood(z.numpy(), float(fit.a), float(fit.b)), abs=1e-8)
    torch.testing.assert_close(torch.stack([fit.a, fit.b]), torch.from_numpy(best.x), rtol=0, atol=0.02)


def test_dcc_fit_is_a_maximum_with_missing_residuals(residuals: Tensor) -> None:
    assert residuals.isnan().any()
    fit = ops.dcc_fit(residuals)
    assert fit.converged, fit.messages()
    a, b = (x.clone().requires_grad_() for x in (fit.a, fit.b))
    total = ops.dcc_log_likelihood(residuals, a, b, fit.target).sum()
    torch.testing.assert_close(total, fit.loglikelihood, rtol=1e-12, atol=0)
    slope = torch.stack(torch.autograd.grad(total, [a, b]))
    assert (slope * torch.stack([fit.standard_error["a"], fit.standard_error["b"]])).abs().max() < 0.01


def test_dcc_fit_recovers_simulated_weights() -> None:
    generator, steps, panels = torch.Generator().manual_seed(0), 4000, 4
    noise = torch.randn(steps, panels, 3, 1, dtype=torch.double, generator=generator)
    target, rows = TARGET.double(), []
    q = target.expand(panels, 3, 3)
    for e in noise:
        scale = q.diagonal(dim1=-2, dim2=-1).sqrt()
        z = torch.linalg.cholesky(q / scale.unsqueeze(-1) / scale.unsqueeze(-2)) @ e
        rows.append(z.squeeze(-1))
        q = 0.06 * target + 0.04 * z @ z.mT + 0.9 * q
    fit = ops.dcc_fit(torch.stack(rows, 1))
    assert fit.converged.all()
    for name, true in (("a", 0.04), ("b", 0.9)):
        assert ((getattr(fit, name) - true).abs() < 4 * fit.standard_error[name]).all(), name


def test_dcc_fit_of_invalid_panels_does_not_change_the_others(residuals: Tensor) -> None:
    good = residuals[-300:]
    bad = good.repeat(5, 1, 1)
    bad[0, :, 1], bad[1, 15:], bad[2, :, 2], bad[3, 7, 0] = torch.nan, torch.nan, bad[2, :, 0], torch.inf
    bad[4, ::2, 0] = bad[4, 1::2, 1] = torch.nan
    fit, expected = ops.dcc_fit(torch.cat([good.unsqueeze(0), bad])), ops.dcc_fit(good)
    assert fit.a[0] == expected.a
    assert fit.b[0] == expected.b
    assert fit.a[1:].isnan().all()
    assert not fit.converged[1:].any()
    assert [message.split(":")[0].split(";")[0] for message in fit.messages()] == [
        "converged", "a series has no finite residuals", "too few rows", "the target is not positive definite",
        "a residual is infinite", "the target is not positive definite",
    ]  # fmt: skip
    assert ops.dcc_fit(torch.empty(0, 50, 3)).a.shape == (0,)
    with pytest.raises(ValueError, match=r"dcc_fit: z must have at least two series; got z \(50, 1\)"):
        ops.dcc_fit(torch.zeros(50, 1))


def test_dcc_correlation_stays_positive_definite_while_a_series_is_missing() -> None:
    z = torch.randn(400, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    z[:, 1] = z[:, 0] + 0.05 * z[:, 1]
    z[:200, 2], z[50::3, 1] = torch.nan, torch.nan
    target = torch.tensor([[1.0, 0.99, 0.1], [0.99, 1.0, 0.1], [0.1, 0.1, 1.0]], dtype=torch.double)
    assert torch.linalg.eigvalsh(ops.dcc_correlation(z, 0.3, 0.6, target)).amin() > 1e-4


def test_dcc_correlation_continues_from_its_last_q() -> None:
    z = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    whole = ops.dcc_correlation(z, 0.1, 0.8, TARGET)
    q = ops.dcc_correlation(z[:12], 0.1, 0.8, TARGET, normalize=False)
    later = ops.dcc_correlation(z[11:], 0.1, 0.8, TARGET, initial=q[-1])
    torch.testing.assert_close(later, whole[11:])


def test_ccc_correlation_matches_pandas_about_zero() -> None:
    z = torch.randn(2, 30, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    z[0, :5, 1] = z[1, 10, 2] = torch.nan
    for panel, actual in zip(z, ops.ccc_correlation(z, min_periods=4)):
        mirrored = pd.concat([pd.DataFrame(panel.numpy()), -pd.DataFrame(panel.numpy())]).sort_index(kind="stable")
        known = mirrored.expanding(min_periods=8).corr().to_numpy().reshape(60, 3, 3)[1::2]  # its mean is zero
        torch.testing.assert_close(actual[1:], torch.from_numpy(known[:-1]), equal_nan=True)
        assert actual[0].isnan().all()


@pytest.mark.slow
def test_ccc_correlation_passes_the_contract() -> None:
    z = torch.randn(2, 7, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    report = opkit.check(ops.ccc_correlation, samples=[opkit.Sample(z, min_periods=2)], compiled=False, time=(-2, -3))
    assert report.ok, str(report)
