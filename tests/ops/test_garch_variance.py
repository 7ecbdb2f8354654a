"""`garch_variance` against the arch package on S&P 500 returns, and its error messages."""

import numpy as np
import pytest
import torch

from torchcommodity import ops

arch = pytest.importorskip("arch")
sp500 = pytest.importorskip("arch.data.sp500")


@pytest.mark.parametrize("asymmetry", [0, 1])
def test_garch_variance_matches_arch_on_sp500(asymmetry: int) -> None:
    returns = 100 * np.log(sp500.load()["Adj Close"]).diff().dropna()
    fit = arch.arch_model(returns, mean="Zero", p=1, o=asymmetry, q=1).fit(disp="off")
    names = ["omega", "alpha[1]", "beta[1]", *["gamma[1]"] * asymmetry]
    h = ops.garch_variance(
        torch.tensor(returns.to_numpy()).unsqueeze(-1),
        *fit.params[names].tolist(),
        initial=float(fit.conditional_volatility.iloc[0] ** 2),
    )
    expected = torch.tensor(fit.conditional_volatility.to_numpy() ** 2).unsqueeze(-1)
    torch.testing.assert_close(h, expected, rtol=1e-10, atol=0)


def test_garch_variance_invalid_series_is_nan_under_vmap() -> None:
    returns, beta = torch.randn(2, 5, 2, generator=torch.Generator().manual_seed(0)), torch.tensor([[0.5, 0.9]] * 2)
    h = torch.func.vmap(lambda r, b: ops.garch_variance(r, 0.1, 0.2, b))(returns, beta)
    assert h[..., 0].isfinite().all()
    assert h[..., 1].isnan().all()


@pytest.mark.parametrize(
    ("omega", "alpha", "message"),
    [
        ([0.1, 0.1, torch.nan], 0.1, r"omega must be >= 0; got omega=nan, series=2 with returns \(5, 3\)"),
        (0.1, [0.1, -0.2, 0.1], r"alpha must be >= 0; got alpha=-0.2, series=1 with returns \(5, 3\)"),
        (-0.1, [0.1, 0.1, 0.1], r"omega must be >= 0; got omega=-0.1 with returns \(5, 3\)"),
        (0.1, [0.1, 0.3, 0.1], r"< 1 if initial is None; got alpha=0.3, beta=0.8, gamma=0.0, series=1 with"),
    ],
)
def test_garch_variance_error_names_invalid_argument(
    omega: float | list[float], alpha: float | list[float], message: str
) -> None:
    parameters = [x if isinstance(x, float) else torch.tensor(x) for x in (omega, alpha)]
    with pytest.raises(ValueError, match=f"^garch_variance: .*{message}"):
        ops.garch_variance(torch.zeros(5, 3), *parameters, beta=0.8)


def test_garch_variance_error_after_fit_of_constant_series() -> None:
    returns = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    returns[:, 1] = 0
    fit = ops.garch_fit(returns)
    with pytest.raises(ValueError, match=r"garch_variance: omega must be >= 0; got omega=nan, series=1 with returns"):
        ops.garch_variance(returns, fit.omega, fit.alpha, fit.beta, initial=fit.initial)
