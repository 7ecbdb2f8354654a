"""`garch_forecast` against the forecasts of the arch package on S&P 500 returns."""

import numpy as np
import pytest
import torch

from torchcommodity import ops

arch = pytest.importorskip("arch")
data = pytest.importorskip("arch.data.sp500")


@pytest.mark.parametrize("asymmetry", [0, 1])
def test_garch_forecast_matches_arch_on_sp500(asymmetry: int) -> None:
    returns = 100 * np.log(data.load()["Adj Close"]).diff().dropna()
    fit = arch.arch_model(returns, mean="Zero", p=1, o=asymmetry, q=1).fit(disp="off")
    names = ["omega", "alpha[1]", "beta[1]", *["gamma[1]"] * asymmetry]
    expected = torch.tensor(fit.forecast(horizon=63, start=0).variance.to_numpy())
    panel = torch.tensor(returns.to_numpy()).unsqueeze(-1)
    first = float(fit.conditional_volatility.iloc[0] ** 2)
    forecast = ops.garch_forecast(panel, *fit.params[names].tolist(), initial=first, horizon=63)
    torch.testing.assert_close(forecast.variance.squeeze(-1), expected, rtol=1e-9, atol=0)
    torch.testing.assert_close(forecast.cumulative.squeeze(-1), expected.cumsum(-1), rtol=1e-9, atol=0)


def test_garch_forecast_selected_steps_match_all_steps() -> None:
    returns = torch.randn(2, 30, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    all_steps = ops.garch_forecast(returns, 0.1, 0.1, 0.8, 0.1, horizon=21)
    selected = ops.garch_forecast(returns, 0.1, 0.1, 0.8, 0.1, horizon=(5, 21))
    for x, expected in zip(selected, all_steps):
        torch.testing.assert_close(x, expected[..., [4, 20], :], rtol=1e-12, atol=0)


def test_garch_forecast_of_integrated_garch_grows_by_omega() -> None:
    returns = torch.tensor([[1.0], [-2.0]], dtype=torch.double)
    variance = ops.garch_forecast(returns, 0.5, 0.2, 0.8, initial=1.0, horizon=4).variance[-1, :, 0]
    torch.testing.assert_close(variance.diff(), torch.full((3,), 0.5, dtype=torch.double))


def test_garch_forecast_gradcheck_with_missing_returns() -> None:
    generator = torch.Generator().manual_seed(0)
    returns = torch.randn(7, 2, dtype=torch.double, generator=generator)
    returns[3, 0] = torch.nan
    parameters = [torch.full((2,), x, dtype=torch.double, requires_grad=True) for x in (0.1, 0.1, 0.7, 0.1)]
    assert torch.autograd.gradcheck(lambda *x: ops.garch_forecast(returns, *x, horizon=4), parameters)


def test_garch_forecast_has_no_look_ahead() -> None:
    returns = torch.randn(20, 2, generator=torch.Generator().manual_seed(0))
    changed = torch.cat([returns[:10], 9 * returns[10:]])
    before, after = (ops.garch_forecast(x, 0.1, 0.1, 0.8, horizon=5).cumulative[:10] for x in (returns, changed))
    assert torch.equal(before, after)


@pytest.mark.parametrize(
    ("horizon", "error", "message"),
    [
        (0, ValueError, "horizon must be an int >= 1 or a sequence of them; got horizon=0"),
        ([5, 0], ValueError, r"horizon\[1\] must be >= 1"),
        (2.5, TypeError, "horizon must be an int >= 1 or a sequence of them"),
    ],
)
def test_garch_forecast_rejects_horizon(horizon: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"garch_forecast: {message}"):
        ops.garch_forecast(torch.zeros(3, 1), 0.1, 0.1, 0.8, horizon=horizon)
