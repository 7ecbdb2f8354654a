"""HarLstm: the untrained network is the econometric baseline, nothing looks ahead, quantiles cannot cross."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from torchcommodity import data
from torchcommodity.models import Har, HarConfig, HarLstm, HarLstmConfig

ROWS = 700


@pytest.fixture(scope="module")
def prices() -> Tensor:  # (1, T, 2)
    """Spot oil and a share index with their own holidays, and in oil a day as of 20 April 2020."""
    panel = data.embedded().select(["WTI", "SP500"]).between("2012-01-01", "2016-12-31")
    values = panel.values.plain().clone()[:ROWS]
    values[400, 0], values[401, 0] = -37.63, 0.0
    return values[None]


def bent(assets: int = 2, seed: int = 0, **settings: object) -> HarLstm:
    """A model whose head is no longer zero, as if trained."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = HarLstm(assets, HarLstmConfig(HarConfig(**settings)))  # type: ignore[arg-type]
        torch.nn.init.normal_(model.head.weight)
    return model.eval()


def all_rows(model: HarLstm, prices: Tensor) -> Tensor:  # (B, T, N) -> (B, T, H, N, Q)
    market = model.har(prices)
    quantiles: Tensor = model.har.quantiles(market, model.correction(market))
    return quantiles


def baseline(model: HarLstm, prices: Tensor) -> Tensor:  # (B, T, N) -> (B, T, H, N, Q)
    quantiles: Tensor = model.har.quantiles(model.har(prices))
    return quantiles


def same(a: Tensor, b: Tensor) -> bool:
    return torch.equal(a.isnan(), b.isnan()) and torch.equal(a.nan_to_num(), b.nan_to_num())


def test_untrained_it_is_the_baseline_bit_for_bit(prices: Tensor) -> None:
    model = HarLstm(2)
    assert same(all_rows(model, prices), baseline(model, prices))
    assert not same(all_rows(bent(), prices), baseline(model, prices))


def test_the_last_row_is_the_last_of_all_rows(prices: Tensor) -> None:
    model = bent()
    rows = all_rows(model, prices)
    assert rows.shape == (1, ROWS, 4, 2, 19)
    assert torch.equal(model(prices), rows[:, -1])
    torch.testing.assert_close(model(prices[:, :500]), rows[:, 499], rtol=1e-5, atol=0)  # float32 network


@pytest.mark.parametrize("row", [1, 260, 400, 698])
def test_no_look_ahead(prices: Tensor, row: int) -> None:
    model, changed = bent(), prices.clone()
    changed[:, row:] = changed[:, row:] * 2 + 1
    changed[:, -1] = torch.nan
    before, after = all_rows(model, prices), all_rows(model, changed)
    assert same(before[:, :row], after[:, :row])
    assert row == 1 or not same(before[:, row:], after[:, row:])


def test_quantiles_after_gaps_and_a_negative_price(prices: Tensor) -> None:
    rows = all_rows(bent(), prices)[0]
    warm = (torch.isfinite(Har(2).returns(prices))[0].cumsum(0) >= 252)[:, None, :, None]
    assert torch.equal(torch.isfinite(rows), warm.expand_as(rows))
    returns, _, none = Har(2).without_rolls(prices)
    variances = Har(2).terms(returns, none)[0, :, 0, 0, :5]
    torch.testing.assert_close(variances[401], variances[399])  # they carry on over what is missing


def test_the_unit_of_prices_does_not_matter(prices: Tensor) -> None:
    model = bent()
    torch.testing.assert_close(model(prices * 159), model(prices), rtol=1e-5, atol=0)


def test_the_garch_term_is_the_mean_of_the_expected_variances(prices: Tensor) -> None:
    model = Har(2)
    returns, _, none = model.without_rolls(prices)
    omega, alpha, beta = (x.tolist() for x in model.garch())
    terms = model.terms(returns, none)[0, :, :, :, -2]
    for n in range(2):
        h = omega[n] / (1 - alpha[n] - beta[n])
        for r in returns[0, :, n].tolist():
            h = omega[n] + alpha[n] * (h if math.isnan(r) else r * r) + beta[n] * h
        for i, horizon in enumerate(model.config.horizons):
            ahead, total = h, 0.0
            for _ in range(horizon):
                total, ahead = total + ahead, omega[n] + (alpha[n] + beta[n]) * ahead
            assert terms[-1, i, n].item() == pytest.approx(total / horizon, rel=1e-9)


@given(
    seed=st.integers(0, 2**31),
    gaps=st.lists(st.integers(0, 299), max_size=40),
    scale=st.floats(1e-3, 1e6),
    size=st.floats(0.01, 1e4),
)
@settings(max_examples=25)
def test_quantiles_never_cross(prices: Tensor, seed: int, gaps: list[int], scale: float, size: float) -> None:
    model = bent(seed=seed, warmup=21)
    with torch.no_grad():
        model.head.weight.mul_(size)
    holed = prices[:, 300:600] * scale
    holed[:, gaps, 0] = torch.nan
    quantiles = model(holed)
    assert quantiles.isfinite().all()
    assert (quantiles.diff(dim=-1) >= 0).all()


def test_the_correction_is_bounded(prices: Tensor) -> None:
    model = bent()
    with torch.no_grad():
        model.head.weight.mul_(1e6)
    ratio = (all_rows(model, prices)[..., 0] / baseline(model, prices)[..., 0]).log()
    assert ratio[ratio.isfinite()].abs().max() <= model.har.config.bound * model.har.config.shrink + 1e-6


def test_a_loss_reaches_every_parameter(prices: Tensor) -> None:
    model = bent()
    model.har.mix.fill_(0.2)
    model(prices).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


def test_it_exports_with_any_number_of_rows_and_batches(prices: Tensor) -> None:
    model, two = bent(warmup=5), prices[:, 300:340].repeat(2, 1, 1)
    sizes = {0: torch.export.Dim("B", min=1, max=64), 1: torch.export.Dim("T", min=8, max=4096)}
    exported = torch.export.export(model, (two,), dynamic_shapes=(sizes,))
    five = prices[:, 300:400].repeat(5, 1, 1)
    torch.testing.assert_close(exported.module()(five), model(five))


def test_bad_input_is_refused_in_words(prices: Tensor) -> None:
    with pytest.raises(ValueError, match=r"Har: prices must be floating point \(B, T, N\) with N=3; got \(1, 700, 2\)"):
        HarLstm(3)(prices)
    with pytest.raises(ValueError, match=r"horizons must be positive and strictly rising; got \(5, 5\)"):
        HarConfig(horizons=(5, 5))
    with pytest.raises(ValueError, match="levels must lie strictly between 0 and 1"):
        HarConfig(levels=(0.5, 1.0))
    with pytest.raises(ValueError, match=r"HarConfig: cap, floor and bound > 0, gap >= 0, shrink in \[0, 1\]; got"):
        HarConfig(shrink=7.0)
    with pytest.raises(ValueError, match="HarConfig: warmup must be at least 1; got 0"):
        HarConfig(warmup=0)


def test_the_last_rows_alone_are_the_last_of_all_rows_bit_for_bit(prices: Tensor) -> None:
    rolls = torch.zeros(1, ROWS + 126, 2, dtype=torch.int64)
    rolls[:, ::21, 0] = 3
    har = bent().har
    for inputs in ((prices,), (prices, rolls)):
        some, every = har(*inputs, last=7), har(*inputs)
        assert all(same(a, b[:, -7:]) for a, b in zip(some, every))


def test_a_network_of_few_rows_and_features_forecasts_at_every_row_what_it_forecasts_at_the_last(
    prices: Tensor,
) -> None:
    model = HarLstm(2, HarLstmConfig(features=(0, 3), rows=5))
    torch.nn.init.normal_(model.head.weight)
    torch.testing.assert_close(model.eval()(prices), all_rows(model, prices)[:, -1], rtol=1e-6, atol=1e-9)
    with pytest.raises(ValueError, match=r"features must rise within 0\.\.8; got \(3, 0\)"):
        HarLstmConfig(features=(3, 0))
