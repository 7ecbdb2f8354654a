"""`hamilton_filter` against statsmodels on S&P 500 returns."""

import numpy as np
import pytest
import torch

from torchcommodity import ops

sp500 = pytest.importorskip("arch.data.sp500")


@pytest.fixture(scope="module")
def returns() -> np.ndarray:
    return (100 * np.log(sp500.load()["Adj Close"]).diff().dropna()).to_numpy().copy()


def test_hamilton_filter_matches_statsmodels_on_sp500(returns: np.ndarray) -> None:
    regression = pytest.importorskip("statsmodels.tsa.regime_switching.markov_regression")
    model = regression.MarkovRegression(returns[:2000], k_regimes=3, switching_variance=True)
    chain = np.array([[0.97, 0.02, 0.01], [0.03, 0.95, 0.02], [0.02, 0.06, 0.92]])
    mean, variance = np.array([0.06, 0.0, -0.2]), np.array([0.2, 1.0, 5.0])
    expected = model.filter(np.concatenate([chain[:, :-1].T.reshape(-1), mean, variance]))
    result = ops.hamilton_filter(
        torch.from_numpy(returns[:2000]).unsqueeze(-1),
        *(torch.from_numpy(x).unsqueeze(-1) for x in (mean, variance, chain)),
    )
    probability = torch.from_numpy(expected.filtered_marginal_probabilities)
    torch.testing.assert_close(result.probability.squeeze(-1), probability, rtol=1e-8, atol=1e-12)
    assert abs(float(result.loglikelihood.sum()) - expected.llf) < 1e-8 * abs(expected.llf)


def test_hamilton_filter_is_finite_after_an_outlier() -> None:
    returns = torch.tensor([[0.0], [1e4], [0.1]])
    mean, variance = torch.zeros(2, 1), torch.tensor([[0.1], [1.0]])
    transition = torch.tensor([[0.99, 0.01], [0.01, 0.99]]).unsqueeze(-1)
    probability, loglikelihood = ops.hamilton_filter(returns, mean, variance, transition)
    assert probability.isfinite().all()
    assert loglikelihood.isfinite().all()
    assert probability[1, 1, 0] == 1


def test_hamilton_filter_maximum_likelihood_by_gradient(returns: np.ndarray) -> None:
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


def test_hamilton_filter_refuses_a_number_for_the_transition_matrix() -> None:
    returns, variance = torch.zeros(5, 1, dtype=torch.double), torch.full((2, 1), 1e-4, dtype=torch.double)
    with pytest.raises(ValueError, match=r"hamilton_filter: transition must be >= 0 with rows that sum to 1"):
        ops.hamilton_filter(returns, torch.zeros_like(variance), variance, 3)
