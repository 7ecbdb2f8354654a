"""Maximum likelihood against arch's own, on real returns; what cannot be fitted harms nobody."""

import importlib

import numpy as np
import pytest
import torch
from torch import Tensor

from torchcommodity import ops

arch = pytest.importorskip("arch")
SERIES = {"wti": "DCOILWTICO", "sp500": "Adj Close", "nasdaq": "Adj Close", "vix": "vix"}


@pytest.fixture(scope="module")
def returns() -> dict[str, np.ndarray]:
    """In percent; WTI has one price below zero, whose neighbors have no return."""
    result = {}
    for name, column in SERIES.items():
        prices = importlib.import_module(f"arch.data.{name}").load()[column].dropna()
        result[name] = 100 * np.log(prices[prices > 0]).diff().dropna().to_numpy()
    return result


def panel_of(returns: dict[str, np.ndarray]) -> Tensor:
    """Later starts as missing returns, as a panel of markets has them."""
    longest = max(map(len, returns.values()))
    columns = [np.r_[np.full(longest - len(x), np.nan), x] for x in returns.values()]
    return torch.from_numpy(np.stack(columns, 1))


@pytest.mark.parametrize("distribution", ["normal", "t"])
@pytest.mark.parametrize("asymmetric", [False, True])
def test_optimum_and_standard_errors_of_arch(
    returns: dict[str, np.ndarray], asymmetric: bool, distribution: str
) -> None:
    fit = ops.garch_fit(panel_of(returns), asymmetric=asymmetric, distribution=distribution)
    assert fit.converged.all(), fit.words()
    for i, (name, series) in enumerate(returns.items()):
        model = arch.arch_model(series, mean="Zero", p=1, o=int(asymmetric), q=1, dist=distribution, rescale=False)
        theirs = model.fit(disp="off", show_warning=False)
        ahead = fit.loglikelihood[i].item() - theirs.loglikelihood
        assert ahead > -1e-3, f"{name}: {-ahead} below arch"
        assert ahead < 1e-3 or theirs.convergence_flag, f"{name}: {ahead} above arch, which says that it converged"
        errors = {f"{key}[1]" if key in ("alpha", "beta", "gamma") else key: x for key, x in fit.standard_error.items()}
        for key, value in theirs.params.items():
            error = theirs.std_err[key]
            assert abs(float(getattr(fit, key.removesuffix("[1]"))[i]) - value) < 0.01 * error
            assert abs(float(errors[key][i]) - error) < 0.01 * error


def test_variances_follow_from_the_fit(returns: dict[str, np.ndarray]) -> None:
    theirs = arch.arch_model(returns["sp500"], mean="Zero", rescale=False).fit(disp="off")
    panel = torch.from_numpy(returns["sp500"]).unsqueeze(1)
    fit = ops.garch_fit(panel)
    h = ops.garch_variance(panel, fit.omega, fit.alpha, fit.beta, fit.gamma, fit.initial)
    torch.testing.assert_close(h[:, 0].sqrt(), torch.from_numpy(theirs.conditional_volatility), rtol=1e-3, atol=0)


@pytest.mark.parametrize("scale", [1e-4, 1e3])
def test_scale_is_taken_out(returns: dict[str, np.ndarray], scale: float) -> None:
    panel = torch.from_numpy(returns["sp500"][:2500]).unsqueeze(1)
    one, other = ops.garch_fit(panel), ops.garch_fit(scale * panel)
    torch.testing.assert_close(other.omega, scale**2 * one.omega, rtol=1e-6, atol=0)
    torch.testing.assert_close(other.alpha, one.alpha, rtol=1e-6, atol=0)
    torch.testing.assert_close(other.loglikelihood, one.loglikelihood - 2500 * np.log(scale), rtol=1e-9, atol=0)
    torch.testing.assert_close(other.standard_error["omega"], scale**2 * one.standard_error["omega"], rtol=1e-4, atol=0)


@pytest.mark.parametrize("distribution", ["normal", "t"])
def test_what_cannot_be_fitted_harms_nobody(returns: dict[str, np.ndarray], distribution: str) -> None:
    good = torch.from_numpy(np.stack([returns["sp500"][i * 1200 : (i + 1) * 1200] for i in range(4)], 1))
    bad = torch.full((1200, 5), torch.nan, dtype=torch.double)
    bad[:, 1], bad[:20, 2], bad[:, 3], bad[:, 4] = 0, good[:20, 0], 0.25, good[:, 1]
    bad[7, 4] = torch.inf
    order = [0, 4, 5, 1, 6, 2, 7, 8, 3]
    alone = ops.garch_fit(good, asymmetric=True, distribution=distribution)
    mixed = ops.garch_fit(torch.cat([good, bad], 1)[:, order], asymmetric=True, distribution=distribution)
    where = [order.index(i) for i in range(9)]
    assert [mixed.words()[i] for i in where] == [
        *["converged"] * 4,
        "no return is finite",
        "the returns do not vary",
        "too few finite returns: at least 10 for each parameter",
        "the returns do not vary",
        "a return is infinite",
    ]
    for name in ("omega", "alpha", "beta", "gamma", "nu", "loglikelihood", "initial"):
        got, expected = getattr(mixed, name)[where], getattr(alone, name)
        assert torch.equal(got[:4], expected), name
        assert got[4:].isnan().all(), name
    for name, error in mixed.standard_error.items():
        assert torch.equal(error[where][:4], alone.standard_error[name]), name


def test_missing_returns_leave_the_likelihood_of_the_others(returns: dict[str, np.ndarray]) -> None:
    holed = torch.from_numpy(returns["sp500"][:2500].copy()).unsqueeze(1)
    holed[100:130] = holed[1000] = torch.nan
    fit = ops.garch_fit(holed, asymmetric=True)
    assert fit.converged.all()
    first = {name: getattr(fit, name).requires_grad_() for name in ("omega", "alpha", "beta", "gamma")}

    def loglikelihood(omega: Tensor, alpha: Tensor, beta: Tensor, gamma: Tensor) -> Tensor:
        h = ops.garch_variance(holed, omega, alpha, beta, gamma, fit.initial.detach())
        return -torch.where(holed.isnan(), 0, h.log() + holed.nan_to_num() ** 2 / h + np.log(2 * np.pi)).sum() / 2

    torch.testing.assert_close(loglikelihood(**first), fit.loglikelihood.sum(), rtol=1e-10, atol=0)


def test_a_batch_of_panels_and_float32(returns: dict[str, np.ndarray]) -> None:
    wide = torch.from_numpy(returns["sp500"][:4000].reshape(4, 1000)).T.contiguous()
    stacked = ops.garch_fit(wide.reshape(1000, 2, 2).movedim(1, 0).float())
    assert stacked.omega.shape == (2, 2)
    torch.testing.assert_close(stacked.beta.flatten(), ops.garch_fit(wide).beta, rtol=1e-4, atol=1e-4)


def test_no_series_and_no_rows() -> None:
    assert ops.garch_fit(torch.empty(100, 0)).omega.shape == (0,)
    assert ops.garch_fit(torch.empty(0, 2)).words() == ["no return is finite"] * 2


def test_refused() -> None:
    with pytest.raises(ValueError, match='garch_fit: distribution must be "normal" or "t"; got distribution=\'ged\''):
        ops.garch_fit(torch.zeros(100, 1), distribution="ged")
    with pytest.raises(ValueError, match=r"garch_fit: returns must be \(\.\.\., T, N\)"):
        ops.garch_fit(torch.zeros(100))
