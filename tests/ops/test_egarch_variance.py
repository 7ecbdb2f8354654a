"""`egarch_variance` against the arch package on S&P 500 returns."""

import numpy as np
import pytest
import torch

from torchcommodity import ops

arch = pytest.importorskip("arch")
sp500 = pytest.importorskip("arch.data.sp500")


@pytest.fixture(scope="module")
def returns() -> np.ndarray:
    return (100 * np.log(sp500.load()["Adj Close"]).diff().dropna()).to_numpy().copy()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_egarch_variance_matches_arch_on_sp500(returns: np.ndarray, dtype: torch.dtype) -> None:
    fit = arch.arch_model(returns, mean="Zero", vol="EGARCH", p=1, o=1, q=1).fit(disp="off")
    parameters = fit.params[["omega", "alpha[1]", "beta[1]", "gamma[1]"]].tolist()
    first = float(fit.conditional_volatility[0] ** 2)
    h = ops.egarch_variance(torch.tensor(returns, dtype=dtype).unsqueeze(-1), *parameters, initial=first)
    expected = torch.tensor(fit.conditional_volatility**2).unsqueeze(-1)
    torch.testing.assert_close(h.double(), expected, rtol=1e-9 if dtype is torch.float64 else 1e-5, atol=0)


def test_egarch_variance_is_finite_in_a_crash() -> None:
    returns = torch.tensor([[0.0], [0.0], [40.0], [-60.0], [0.0]])
    h = ops.egarch_variance(returns, omega=0.0, alpha=0.2, beta=0.95, gamma=-0.1, initial=1e-4)
    assert h[:3].isfinite().all()
    assert (h > 0).all()
