"""Value at risk and expected shortfall of samples and paths: definitions, coherence, an independent oracle."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from torchcommodity.data import SyntheticTensor, embedded
from torchcommodity.risk import expected_shortfall, holding_returns, value_at_risk

levels = st.sampled_from([0.0, 0.5, 0.9, 0.95, 0.975, 0.99])
samples = arrays(np.float64, st.integers(1, 60), elements=st.integers(-1000, 1000).map(lambda x: x / 1000))


def wti_returns() -> torch.Tensor:
    prices = embedded(["WTI"]).between("2010-01-01", "2018-12-31").to_pandas()["WTI"].dropna()
    return torch.from_numpy(prices.pct_change().dropna().to_numpy(copy=True))


@settings(max_examples=25)
@given(samples, levels)
def test_value_at_risk_is_the_quantile_of_losses_by_inverted_cdf(returns: Any, level: float) -> None:
    expected = np.quantile(-returns, level, method="inverted_cdf")
    assert value_at_risk(torch.from_numpy(returns), level).item() == expected


@pytest.mark.parametrize("level", [0.9, 0.95, 0.975, 0.99])
def test_expected_shortfall_agrees_with_skfolio(level: float) -> None:
    measures = pytest.importorskip("skfolio.measures")
    returns = wti_returns()
    assert expected_shortfall(returns, level).item() == pytest.approx(measures.cvar(returns.numpy(), level))


@settings(max_examples=25)
@given(samples, levels)
def test_expected_shortfall_is_at_least_value_at_risk(returns: Any, level: float) -> None:
    r = torch.from_numpy(returns)
    assert expected_shortfall(r, level) >= value_at_risk(r, level) - 1e-12


@settings(max_examples=25)
@given(samples, levels, st.floats(0.1, 10), st.floats(-1, 1))
def test_risk_is_homogeneous_and_translation_equivariant(returns: Any, level: float, a: float, b: float) -> None:
    r = torch.from_numpy(returns)
    for measure in (value_at_risk, expected_shortfall):
        assert measure(a * r + b, level).item() == pytest.approx(a * measure(r, level).item() - b, abs=1e-9)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(2, 60), levels)
def test_expected_shortfall_is_subadditive(seed: int, rows: int, level: float) -> None:
    a, b = torch.randn(2, rows, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    total = expected_shortfall(a, level) + expected_shortfall(b, level)
    assert expected_shortfall(a + b, level) <= total + 1e-9


def test_risk_of_a_sample_ignores_nan_and_keeps_leading_axes() -> None:
    returns = torch.tensor([[0.01, torch.nan, -0.04, 0.02, -0.02], [torch.nan] * 5])[None]
    var, es = value_at_risk(returns, 0.75), expected_shortfall(returns, 0.75)
    assert var.shape == es.shape == (1, 2)
    assert var[0].tolist() == pytest.approx([0.02, torch.nan], nan_ok=True)
    assert es[0].tolist() == pytest.approx([0.04, torch.nan], nan_ok=True)


def test_expected_shortfall_has_a_gradient() -> None:
    returns = wti_returns()[:40].requires_grad_()
    expected_shortfall(returns, 0.9).backward()
    assert returns.grad is not None
    worst = returns.detach().argsort()[:4]
    assert returns.grad[worst].tolist() == pytest.approx([-0.25] * 4)
    assert (returns.grad.abs() > 1e-9).sum() == 4


def test_holding_returns_are_those_of_positions_without_rebalancing() -> None:
    log_returns = 0.01 * torch.randn(7, 21, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    weights = torch.tensor([0.5, -0.2, 0.0], dtype=torch.float64)
    wealth = log_returns.cumsum(1)[:, -1].exp()
    assert torch.allclose(holding_returns(log_returns, weights), ((wealth - 1) * weights).sum(-1))
    log_returns[0, 3] = torch.nan
    assert holding_returns(log_returns, weights).isnan().tolist() == [True] + [False] * 6
    log_returns[1, 3, 2] = torch.nan  # an asset without a weight
    assert holding_returns(log_returns, weights)[1].isfinite()


def test_risk_of_generated_paths_stays_marked_as_synthetic() -> None:
    paths = SyntheticTensor(torch.zeros(10, 5, 2) - 0.01)
    var = value_at_risk(holding_returns(paths, torch.tensor([0.5, 0.5])))
    assert isinstance(var, SyntheticTensor)
    assert var.item() == pytest.approx(1 - np.exp(-0.05))


@pytest.mark.parametrize("measure", [value_at_risk, expected_shortfall])
def test_risk_of_a_sample_rejects_bad_input(measure: Any) -> None:
    name = measure.__name__
    with pytest.raises(ValueError, match=rf"{name}: level must be in \[0, 1\); got level=95"):
        measure(torch.ones(5), level=95)
    with pytest.raises(ValueError, match=rf"{name}: returns must be floating point \(\.\.\., T\) with T >= 1; got"):
        measure(torch.ones(5).long())
    with pytest.raises(ValueError, match=rf"{name}: returns must be"):
        measure(torch.ones(2, 0))
    with pytest.raises(TypeError, match=rf"{name}: returns must be a Tensor; got returns='ndarray'"):
        measure(torch.ones(5).numpy())
    with pytest.raises(ValueError, match=r"level must be .*; got level='95 %'"):
        measure(torch.ones(5), level="95 %")


def test_holding_returns_rejects_bad_input() -> None:
    with pytest.raises(ValueError, match=r"holding_returns: log_returns must be .* \(\.\.\., T, N\); got"):
        holding_returns(torch.ones(5), torch.ones(1))
    with pytest.raises(
        ValueError, match=r"weights must have one value for each asset \(\.\.\., N\); got weights \(3,\)"
    ):
        holding_returns(torch.ones(5, 2), torch.ones(3))
