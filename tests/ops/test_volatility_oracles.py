"""EGARCH against arch and the Hamilton filter against statsmodels, on their own fits of real returns."""

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
def test_sp500_variances_of_arch(returns: np.ndarray, dtype: torch.dtype) -> None:
    fit = arch.arch_model(returns, mean="Zero", vol="EGARCH", p=1, o=1, q=1).fit(disp="off")
    parameters = fit.params[["omega", "alpha[1]", "beta[1]", "gamma[1]"]].tolist()
    first = float(fit.conditional_volatility[0] ** 2)
    h = ops.egarch_variance(torch.tensor(returns, dtype=dtype).unsqueeze(-1), *parameters, initial=first)
    expected = torch.tensor(fit.conditional_volatility**2).unsqueeze(-1)
    torch.testing.assert_close(h.double(), expected, rtol=1e-9 if dtype is torch.float64 else 1e-5, atol=0)


def test_a_quiet_market_and_a_crash_stay_finite() -> None:
    returns = torch.tensor([[0.0], [0.0], [40.0], [-60.0], [0.0]])
    h = ops.egarch_variance(returns, omega=0.0, alpha=0.2, beta=0.95, gamma=-0.1, initial=1e-4)
    assert h[:3].isfinite().all()
    assert (h > 0).all()


def test_sp500_regimes_of_statsmodels(returns: np.ndarray) -> None:
    regression = pytest.importorskip("statsmodels.tsa.regime_switching.markov_regression")
    model = regression.MarkovRegression(returns[:2000], k_regimes=3, switching_variance=True)
    chain = np.array([[0.97, 0.02, 0.01], [0.03, 0.95, 0.02], [0.02, 0.06, 0.92]])
    mean, variance = np.array([0.06, 0.0, -0.2]), np.array([0.2, 1.0, 5.0])
    theirs = model.filter(np.concatenate([chain[:, :-1].T.reshape(-1), mean, variance]))
    ours = ops.hamilton_filter(
        torch.from_numpy(returns[:2000]).unsqueeze(-1),
        *(torch.from_numpy(x).unsqueeze(-1) for x in (mean, variance, chain)),
    )
    expected = torch.from_numpy(theirs.filtered_marginal_probabilities)
    torch.testing.assert_close(ours.probability.squeeze(-1), expected, rtol=1e-8, atol=1e-12)
    assert abs(float(ours.loglikelihood.sum()) - theirs.llf) < 1e-8 * abs(theirs.llf)


def test_a_return_that_no_regime_expects_leaves_numbers() -> None:
    returns = torch.tensor([[0.0], [1e4], [0.1]])
    regimes = torch.zeros(2, 1), torch.tensor([[0.1], [1.0]])
    stay = torch.tensor([[0.99, 0.01], [0.01, 0.99]]).unsqueeze(-1)
    probability, loglikelihood = ops.hamilton_filter(returns, *regimes, stay)
    assert probability.isfinite().all()
    assert loglikelihood.isfinite().all()
    assert probability[1, 1, 0] == 1


def test_regimes_are_learned_by_gradient(returns: np.ndarray) -> None:
    panel = torch.from_numpy(returns[:1000]).unsqueeze(-1)
    logits = torch.tensor([[2.0, 0.0], [0.0, 2.0]], dtype=torch.double, requires_grad=True)
    scale = torch.tensor([[-1.0], [0.5]], dtype=torch.double, requires_grad=True)
    mean = torch.zeros(2, 1, dtype=torch.double)
    optimizer = torch.optim.LBFGS([logits, scale], max_iter=30, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = -ops.hamilton_filter(panel, mean, scale.exp(), logits.softmax(-1).unsqueeze(-1)).loglikelihood.mean()
        value.backward()
        return value

    before = loss().item()
    optimizer.step(loss)
    assert loss().item() < before - 0.01
    assert float(scale.grad.abs().max()) < 1e-3
