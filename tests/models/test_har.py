"""`Har`: variance terms, quantiles, features and the correction of the scale."""

import math

import numpy as np
import pytest
import torch
from har_models import ROWS, all_rows, baseline, equal_with_nan, two_symbols, with_random_head
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from torchcommodity.models import Har, HarConfig, HarLstm, ModelInputs


@pytest.fixture(scope="module")
def prices() -> Tensor:  # (1, T, 2)
    return two_symbols()


def test_har_quantiles_are_finite_after_the_warmup(prices: Tensor) -> None:
    rows = all_rows(with_random_head(), prices)[0]
    warm = (torch.isfinite(Har(2).returns(prices))[0].cumsum(0) >= 252)[:, None, :, None]
    assert torch.equal(torch.isfinite(rows), warm.expand_as(rows))


def test_har_variance_terms_carry_over_missing_prices(prices: Tensor) -> None:
    variances = Har(2).variance_terms(Har(2).adjust_rolls(ModelInputs(prices)))[0, :, 0, 0]
    torch.testing.assert_close(variances[401], variances[399])


def test_har_is_scale_invariant(prices: Tensor) -> None:
    model = with_random_head()
    torch.testing.assert_close(model(prices * 159), model(prices), rtol=1e-5, atol=0)


def test_har_garch_term_is_the_mean_of_the_expected_variances(prices: Tensor) -> None:
    har = Har(2)
    adjusted = har.adjust_rolls(ModelInputs(prices))
    omega, alpha, beta = (x.tolist() for x in har.garch_parameters())
    terms = har.variance_terms(adjusted)[0, :, :, :, -2]
    for n in range(2):
        h = omega[n] / (1 - alpha[n] - beta[n])
        for r in filter(math.isfinite, adjusted.returns[0, :, n].tolist()):
            h = omega[n] + alpha[n] * r * r + beta[n] * h
        for i, horizon in enumerate(har.config.horizons):
            expected, total = h, 0.0
            for _ in range(horizon):
                total, expected = total + expected, omega[n] + (alpha[n] + beta[n]) * expected
            assert terms[-1, i, n].item() == pytest.approx(total / horizon, rel=1e-9)


@given(
    seed=st.integers(0, 2**31),
    gaps=st.lists(st.integers(0, 299), max_size=40),
    scale=st.floats(1e-3, 1e6),
    size=st.floats(0.01, 1e4),
)
@settings(max_examples=25)
def test_har_quantiles_never_cross(prices: Tensor, seed: int, gaps: list[int], scale: float, size: float) -> None:
    model = with_random_head(seed=seed, warmup=21)
    with torch.no_grad():
        model.head.weight.mul_(size)
    with_gaps = prices[:, 300:600] * scale
    with_gaps[:, gaps, 0] = torch.nan
    quantiles = model(with_gaps)
    assert quantiles.isfinite().all()
    assert (quantiles.diff(dim=-1) >= 0).all()


def test_har_scale_correction_is_bounded(prices: Tensor) -> None:
    model = with_random_head()
    with torch.no_grad():
        model.head.weight.mul_(1e6)
    ratio = (all_rows(model, prices)[..., 0] / baseline(model, prices)[..., 0]).log()
    assert ratio[ratio.isfinite()].abs().max() <= model.har.config.bound * model.har.config.shrink + 1e-6


def test_har_last_rows_equal_those_of_all_rows(prices: Tensor) -> None:
    rolls = torch.zeros(1, ROWS + 126, 2, dtype=torch.int64)
    rolls[:, ::21, 0] = 3
    har = with_random_head().har
    for inputs in ((prices,), (prices, rolls)):
        assert all(equal_with_nan(a, b[:, -7:]) for a, b in zip(har(*inputs, last_rows=7), har(*inputs)))


def test_har_gradient_reaches_every_parameter(prices: Tensor) -> None:
    model = with_random_head()
    model.har.mix.fill_(0.2)
    model(prices).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


def test_har_rejects_bad_input(prices: Tensor) -> None:
    with pytest.raises(ValueError, match=r"Har: prices must be floating point \(B, T, N\) with N=3; got \(1, 700, 2\)"):
        HarLstm(3)(prices)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"horizons": (5, 5)}, r"horizons must be positive and strictly increasing; got \(5, 5\)"),
        ({"levels": (0.5, 1.0)}, "levels must lie strictly between 0 and 1"),
        ({"shrink": 7.0}, r"shrink must be in \[0, 1\]; got 7.0"),
        ({"gap_prior": 0.0}, "gap_prior must be positive; got 0.0"),
        ({"warmup": 0}, "warmup must be at least 1; got 0"),
    ],
)
def test_har_config_rejects(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=f"^HarConfig: {message}"):
        HarConfig(**settings)  # type: ignore[arg-type]


@given(rows=st.lists(st.integers(1, ROWS), min_size=1, max_size=40))
@settings(max_examples=15)
def test_har_rows_without_a_price_of_a_symbol_change_nothing(prices: Tensor, rows: list[int]) -> None:
    """Rows on which the first symbol does not trade are inserted; the second symbol trades on half of them."""
    har, inserted = Har(2), sorted(rows)
    spread = torch.from_numpy(np.insert(prices[0].numpy(), inserted, np.nan, axis=0))
    old_rows = torch.from_numpy(np.insert(np.ones(ROWS, dtype=bool), inserted, False))
    spread[~old_rows, 1] = torch.where(torch.arange(len(inserted)) % 2 == 0, 50.0, torch.nan).double()
    expected, actual = har(prices), har(spread[None])
    assert equal_with_nan(expected.features[:, :, 0], actual.features[:, old_rows, 0])
    assert equal_with_nan(expected.log_scale[..., 0], actual.log_scale[:, old_rows, :, 0])
    assert equal_with_nan(har.quantiles(expected)[0, -1, :, 0], har.quantiles(actual)[0, -1, :, 0])
