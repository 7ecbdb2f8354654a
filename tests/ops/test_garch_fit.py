"""`garch_fit` against the arch package on real returns; series that cannot be fitted."""

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
    """In percent. The one negative price of WTI is dropped."""
    result = {}
    for name, column in SERIES.items():
        prices = importlib.import_module(f"arch.data.{name}").load()[column].dropna()
        result[name] = 100 * np.log(prices[prices > 0]).diff().dropna().to_numpy()
    return result


def panel_of(returns: dict[str, np.ndarray]) -> Tensor:
    """Aligned at the end; series that start later begin with NaN."""
    max_length = max(map(len, returns.values()))
    columns = [np.r_[np.full(max_length - len(x), np.nan), x] for x in returns.values()]
    return torch.from_numpy(np.stack(columns, 1))


@pytest.mark.parametrize("distribution", ["normal", "t"])
@pytest.mark.parametrize("asymmetric", [False, True])
def test_garch_fit_matches_arch(returns: dict[str, np.ndarray], asymmetric: bool, distribution: str) -> None:
    fit = ops.garch_fit(panel_of(returns), asymmetric=asymmetric, distribution=distribution)
    assert fit.converged.all(), fit.messages()
    for i, (name, series) in enumerate(returns.items()):
        model = arch.arch_model(series, mean="Zero", p=1, o=int(asymmetric), q=1, dist=distribution, rescale=False)
        reference = model.fit(disp="off", show_warning=False)
        gain = fit.loglikelihood[i].item() - reference.loglikelihood
        assert gain > -1e-3, f"{name}: {-gain} below arch"
        assert gain < 1e-3 or reference.convergence_flag, f"{name}: {gain} above arch, which reports convergence"
        errors = {f"{key}[1]" if key in ("alpha", "beta", "gamma") else key: x for key, x in fit.standard_error.items()}
        for key, value in reference.params.items():
            error = reference.std_err[key]
            assert abs(float(getattr(fit, key.removesuffix("[1]"))[i]) - value) < 0.01 * error
            assert abs(float(errors[key][i]) - error) < 0.01 * error


def test_garch_fit_gives_arguments_of_garch_variance(returns: dict[str, np.ndarray]) -> None:
    reference = arch.arch_model(returns["sp500"], mean="Zero", rescale=False).fit(disp="off")
    panel = torch.from_numpy(returns["sp500"]).unsqueeze(1)
    fit = ops.garch_fit(panel)
    h = ops.garch_variance(panel, fit.omega, fit.alpha, fit.beta, fit.gamma, fit.initial)
    torch.testing.assert_close(h[:, 0].sqrt(), torch.from_numpy(reference.conditional_volatility), rtol=1e-3, atol=0)


@pytest.mark.parametrize("scale", [1e-4, 1e3])
def test_garch_fit_does_not_depend_on_scale(returns: dict[str, np.ndarray], scale: float) -> None:
    panel = torch.from_numpy(returns["sp500"][:2500]).unsqueeze(1)
    fit, scaled = ops.garch_fit(panel), ops.garch_fit(scale * panel)
    torch.testing.assert_close(scaled.omega, scale**2 * fit.omega, rtol=1e-6, atol=0)
    torch.testing.assert_close(scaled.alpha, fit.alpha, rtol=1e-6, atol=0)
    torch.testing.assert_close(scaled.loglikelihood, fit.loglikelihood - 2500 * np.log(scale), rtol=1e-9, atol=0)
    torch.testing.assert_close(
        scaled.standard_error["omega"], scale**2 * fit.standard_error["omega"], rtol=1e-4, atol=0
    )


@pytest.mark.parametrize("distribution", ["normal", "t"])
def test_garch_fit_of_invalid_series_does_not_change_the_others(
    returns: dict[str, np.ndarray], distribution: str
) -> None:
    good = torch.from_numpy(np.stack([returns["sp500"][i * 1200 : (i + 1) * 1200] for i in range(4)], 1))
    bad = torch.full((1200, 5), torch.nan, dtype=torch.double)
    bad[:, 1], bad[:20, 2], bad[:, 3], bad[:, 4] = 0, good[:20, 0], 0.25, good[:, 1]
    bad[7, 4] = torch.inf
    order = [0, 4, 5, 1, 6, 2, 7, 8, 3]
    expected = ops.garch_fit(good, asymmetric=True, distribution=distribution)
    mixed = ops.garch_fit(torch.cat([good, bad], 1)[:, order], asymmetric=True, distribution=distribution)
    positions = [order.index(i) for i in range(9)]
    assert [mixed.messages()[i] for i in positions] == [
        *["converged"] * 4,
        "no finite returns",
        "returns are constant",
        "too few finite returns; at least 10 per parameter are needed",
        "returns are constant",
        "a return is infinite",
    ]
    for name in ("omega", "alpha", "beta", "gamma", "nu", "loglikelihood", "initial"):
        estimates = getattr(mixed, name)[positions]
        assert torch.equal(estimates[:4], getattr(expected, name)), name
        assert estimates[4:].isnan().all(), name
    for name, error in mixed.standard_error.items():
        assert torch.equal(error[positions][:4], expected.standard_error[name]), name


def test_garch_fit_likelihood_with_missing_returns(returns: dict[str, np.ndarray]) -> None:
    panel = torch.from_numpy(returns["sp500"][:2500].copy()).unsqueeze(1)
    panel[100:130] = panel[1000] = torch.nan
    fit = ops.garch_fit(panel, asymmetric=True)
    assert fit.converged.all()

    def loglikelihood(omega: Tensor, alpha: Tensor, beta: Tensor, gamma: Tensor) -> Tensor:
        h = ops.garch_variance(panel, omega, alpha, beta, gamma, fit.initial.detach())
        return -torch.where(panel.isnan(), 0, h.log() + panel.nan_to_num() ** 2 / h + np.log(2 * np.pi)).sum() / 2

    torch.testing.assert_close(
        loglikelihood(fit.omega, fit.alpha, fit.beta, fit.gamma), fit.loglikelihood.sum(), rtol=1e-10, atol=0
    )


def test_garch_fit_of_float32_batch(returns: dict[str, np.ndarray]) -> None:
    panel = torch.from_numpy(returns["sp500"][:4000].reshape(4, 1000)).T.contiguous()
    fit = ops.garch_fit(panel.reshape(1000, 2, 2).movedim(1, 0).float())
    assert fit.omega.shape == (2, 2)
    torch.testing.assert_close(fit.beta.flatten(), ops.garch_fit(panel).beta, rtol=1e-4, atol=1e-4)


def test_garch_fit_of_empty_panel() -> None:
    assert ops.garch_fit(torch.empty(100, 0)).omega.shape == (0,)
    assert ops.garch_fit(torch.empty(0, 2)).messages() == ["no finite returns"] * 2


def test_garch_fit_rejects_invalid_arguments() -> None:
    with pytest.raises(ValueError, match='garch_fit: distribution must be "normal" or "t"; got distribution=\'ged\''):
        ops.garch_fit(torch.zeros(100, 1), distribution="ged")
    with pytest.raises(ValueError, match=r"garch_fit: returns must be \(\.\.\., T, N\)"):
        ops.garch_fit(torch.zeros(100))
