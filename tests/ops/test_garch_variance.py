"""What the contract cannot see: arch's own fit of real returns, of which we must find the same variances."""

import numpy as np
import pytest
import torch

from torchcommodity import ops

arch = pytest.importorskip("arch")
sp500 = pytest.importorskip("arch.data.sp500")


@pytest.mark.parametrize("asymmetry", [0, 1])
def test_sp500_variances_of_arch(asymmetry: int) -> None:
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


def test_out_of_range_is_nan_where_values_cannot_be_read() -> None:
    returns, beta = torch.randn(2, 5, 2, generator=torch.Generator().manual_seed(0)), torch.tensor([[0.5, 0.9]] * 2)
    h = torch.func.vmap(lambda r, b: ops.garch_variance(r, 0.1, 0.2, b))(returns, beta)
    assert h[..., 0].isfinite().all()
    assert h[..., 1].isnan().all()
