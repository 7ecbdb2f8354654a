"""Tests and scores of expected shortfall: published critical values, the minimum of the joint loss."""

import numpy as np
import pytest
import torch
from scipy import stats

from torchcommodity.risk import acerbi_szekely_test, fissler_ziegel_loss

VAR, ES = (float(x) for x in (-stats.norm.ppf(0.025), stats.norm.pdf(stats.norm.ppf(0.025)) / 0.025))


def test_acerbi_szekely_test_by_hand() -> None:
    returns = np.array([-3.0, 1.0, -5.0, np.nan, -1.0])
    var, es = np.full(5, 2.0), np.array([4.0, 4.0, 5.0, 4.0, 4.0])
    test = acerbi_szekely_test(returns, var, es, level=0.75, replications=100)
    assert (test.exceedances, test.observations, test.expected) == (2, 4, 1.0)
    assert test.z1 == pytest.approx(1 - (3 / 4 + 5 / 5) / 2)
    assert test.z2 == pytest.approx(1 - (3 / 4 + 5 / 5) / 1)


@pytest.mark.parametrize(("critical", "p_value"), [(-0.70, 0.05), (-1.8, 1e-4)])
def test_acerbi_szekely_test_simulates_the_published_critical_values(critical: float, p_value: float) -> None:
    """Acerbi, Szekely (2014): -0.7 at 5 % and -1.8 at 0.01 % for Z2 of a normal distribution, 250 days, 97.5 %."""
    returns = np.full(250, 1.0)
    returns[0] = -ES * (1 - critical) * 250 * 0.025  # one loss that makes Z2 critical
    test = acerbi_szekely_test(returns, np.full(250, VAR), np.full(250, ES))
    assert test.z2 == pytest.approx(critical)
    assert p_value / 3 < test.z2_p_value < 3 * p_value
    assert p_value != 0.05 or test.z2_p_value == pytest.approx(0.05, abs=0.005)


def test_acerbi_szekely_test_has_size_and_power() -> None:
    returns = np.random.default_rng(0).standard_normal((100, 250))
    var, es = np.full(250, VAR), np.full(250, ES)
    right = [acerbi_szekely_test(x, var, es, replications=500).z2_p_value for x in returns]
    wrong = [acerbi_szekely_test(2 * x, var, es, replications=500).z2_p_value for x in returns[:30]]
    assert 0 <= np.mean(np.array(right) < 0.05) < 0.12
    assert np.mean(np.array(wrong) < 0.05) > 0.9


def test_acerbi_szekely_test_without_exceedances_is_one_sided() -> None:
    test = acerbi_szekely_test(np.ones(250), np.full(250, VAR), np.full(250, ES), replications=200)
    assert np.isnan(test.z1)
    assert np.isnan(test.z1_p_value)
    assert (test.z2, test.z2_p_value) == (1.0, 1.0)


def test_acerbi_szekely_test_rejects_bad_input() -> None:
    one = np.ones(3)
    with pytest.raises(
        ValueError, match=r"expected_shortfall must be positive and at least value_at_risk; got .*=0\.5"
    ):
        acerbi_szekely_test(one, one, 0.5 * one)
    with pytest.raises(ValueError, match=r"at least one row must have a return, a value at risk and an expected"):
        acerbi_szekely_test(one, one * np.nan, one)
    with pytest.raises(ValueError, match=r"acerbi_szekely_test: replications must be >= 1; got replications=0"):
        acerbi_szekely_test(one, one, one, replications=0)


def test_fissler_ziegel_loss_equals_the_published_formula() -> None:
    """Patton, Ziegel, Chen (2019), eq. 6, with v = -VaR and e = -ES of the lower tail."""
    y, v, e, alpha = (torch.tensor(x, dtype=torch.float64) for x in ([-3.0, 0.5], [-1.5, -1.0], [-2.0, -1.2], 0.05))
    published = -(y <= v).double() * (v - y) / (alpha * e) + v / e + (-e).log() - 1
    assert torch.allclose(fissler_ziegel_loss(y, -v, -e, 0.95), published)


def test_fissler_ziegel_loss_is_smallest_for_the_true_pair() -> None:
    u = (np.arange(200_000) + 0.5) / 200_000  # the distribution itself, without sampling error
    y = torch.from_numpy(stats.norm.ppf(u))
    pair = torch.tensor([VAR, ES], dtype=torch.float64, requires_grad=True)
    loss = fissler_ziegel_loss(y, pair[0], pair[1], 0.975).mean()
    loss.backward()
    assert loss.item() == pytest.approx(np.log(ES), abs=1e-3)
    assert pair.grad is not None
    assert pair.grad.abs().max() < 1e-2
    for v, e in ((VAR, 1.2 * ES), (VAR, 0.9 * ES), (0.8 * VAR, ES), (1.1 * VAR, ES)):
        other = fissler_ziegel_loss(y, torch.tensor(v), torch.tensor(e), 0.975).mean()
        assert other > loss


def test_fissler_ziegel_loss_propagates_nan_and_rejects_a_shortfall_that_is_not_positive() -> None:
    y = torch.tensor([torch.nan, 0.1])
    assert fissler_ziegel_loss(y, torch.tensor(1.0), torch.tensor(2.0)).isnan().tolist() == [True, False]
    with pytest.raises(ValueError, match=r"expected_shortfall must be positive; got expected_shortfall=-1\.0"):
        fissler_ziegel_loss(y, torch.tensor(1.0), torch.tensor(-1.0))
