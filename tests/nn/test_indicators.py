"""Half-lives, GARCH parameters and thresholds that are learned: their operators' numbers, gradients, causality."""

from collections.abc import Callable

import pandas as pd
import pytest
import torch
from torch import Tensor
from torch.export import Dim

from torchcommodity import data, nn, ops

LAYERS: dict[str, Callable[[], torch.nn.Module]] = {
    "ewm": lambda: nn.EwmVolatility([5.0, 21.0], assets=3),
    "garch": lambda: nn.GarchVariance(assets=3),
    "indicators": lambda: nn.Indicators(),
    "regime": lambda: nn.CorrelationRegime(30, min_periods=20, lag=10, threshold=0.2),
}


@pytest.fixture(scope="module")
def prices() -> Tensor:  # (T, 3)
    """Oil, a share index and volatility, with their own holidays, and in oil a day as of 20 April 2020."""
    panel = data.embedded().select(["WTI", "SP500", "VIX"]).between("2014-01-01", "2015-06-30")
    values = panel.values.plain().clone()
    values[200, 0], values[201, 0] = -37.63, torch.nan
    return values


def output(name: str, layer: torch.nn.Module, prices: Tensor) -> tuple[Tensor, ...]:
    found = layer(ops.log_returns(prices) if name in ("ewm", "garch") else prices)
    return (found,) if isinstance(found, Tensor) else tuple(found)


def same(a: Tensor, b: Tensor) -> bool:
    return torch.equal(a.isnan(), b.isnan()) and torch.equal(a.nan_to_num(), b.nan_to_num())


def test_volatilities_are_those_of_the_operators(prices: Tensor) -> None:
    returns = ops.log_returns(prices)
    found = nn.EwmVolatility([5.0, 21.0], dtype=torch.double)(returns)
    for k, halflife in enumerate((5, 21)):
        torch.testing.assert_close(found[..., k], ops.riskmetrics_variance(returns, halflife).sqrt(), equal_nan=True)
    garch = nn.GarchVariance(3, 1e-4, 0.95, 0.1, dtype=torch.double)
    h = ops.garch_variance(returns, 0.05e-4, 0.095, 0.855)
    torch.testing.assert_close(garch(returns), h)
    torch.testing.assert_close(garch.next_variance(returns)[:-1], h[1:])
    assert {name: value[0].item() for name, value in garch.learned_parameters().items()} == pytest.approx(
        {"omega": 0.05e-4, "alpha": 0.095, "beta": 0.855}
    )


def test_indicators_are_those_of_pandas(prices: Tensor) -> None:
    close = prices[:150, 1]
    found = nn.Indicators(dtype=torch.double)(close.unsqueeze(-1)).squeeze(1)[close.isfinite()].detach().numpy()
    series = pd.Series(close[close.isfinite()].numpy())

    def ewm(x: pd.Series, alpha: float) -> pd.Series:
        return x.ewm(alpha=alpha, adjust=False).mean()

    change = series.diff()
    gain, loss = (ewm(x, 1 / 14) for x in (change.clip(lower=0)[1:], (-change).clip(lower=0)[1:]))
    logs = series.map(lambda p: torch.tensor(p).double().log().item())
    line = ewm(logs, 2 / 13) - ewm(logs, 2 / 27)
    assert found[-1, 0] == pytest.approx((100 * gain / (gain + loss)).iloc[-1], rel=1e-9)
    assert found[-1, 1] == pytest.approx(line.iloc[-1], rel=1e-7)
    assert found[-1, 2] == pytest.approx((line - ewm(line[25:], 2 / 10)).iloc[-1], rel=1e-7)


def test_the_hard_regime_is_the_operators_and_the_gate_opens_where_it_changes(prices: Tensor) -> None:
    layer = nn.CorrelationRegime(30, min_periods=20, lag=10, threshold=0.2, softness=1e-4)
    found = layer(prices)
    correlation = ops.rolling_correlation(ops.log_returns(prices), 30, min_periods=20)
    torch.testing.assert_close(found.correlation, correlation, equal_nan=True)
    shift, regime = ops.correlation_regime(correlation, 0.2, 10)
    torch.testing.assert_close(found.shift, shift, equal_nan=True)
    assert torch.equal(layer.regime(prices), regime)
    assert regime[-1] > 2
    begins = torch.cat([torch.zeros(1, dtype=torch.bool), regime.diff() > 0])
    assert (found.gate[begins] > 0.5).all()
    assert torch.equal(found.gate > 0.5, shift > 0.2)
    assert (found.age[begins] < 2).all()


def test_fewer_rows_than_the_window_are_all_warm_up(prices: Tensor) -> None:
    found = nn.CorrelationRegime(30)(prices[:7])
    assert found.correlation.isnan().all()
    assert found.gate.eq(0).all()
    assert found.age.tolist() == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("row", [1, 150, 200])
def test_no_layer_looks_ahead(name: str, row: int, prices: Tensor) -> None:
    layer, changed = LAYERS[name](), prices.clone()
    changed[row:] = changed[row:].abs().sqrt()
    changed[-1] = torch.nan
    for before, after in zip(output(name, layer, prices), output(name, layer, changed)):
        assert same(before[:row], after[:row])


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_reach_every_parameter_and_missing_prices_poison_none(name: str, prices: Tensor) -> None:
    layer = LAYERS[name]().double()
    outputs = output(name, layer, prices)
    assert all(x[-1].isfinite().all() for x in outputs)
    sum(x.nansum() for x in outputs if x.requires_grad).backward()  # type: ignore[union-attr]
    for parameter in layer.parameters():
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all()
        assert parameter.grad.ne(0).all()


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_the_parameters_are_right(name: str, prices: Tensor) -> None:
    layer = LAYERS[name]().double()
    values = [p.detach().clone().requires_grad_() for p in layer.parameters()]
    names = [key for key, _ in layer.named_parameters()]

    def value(*parameters: Tensor) -> Tensor:
        inputs = prices if name in ("indicators", "regime") else ops.log_returns(prices) * 100
        found = torch.func.functional_call(layer, dict(zip(names, parameters)), (inputs,))
        found = found if isinstance(found, Tensor) else found.age
        return found[-60:].nan_to_num()

    torch.autograd.gradcheck(value, values, eps=1e-6, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", LAYERS)
def test_what_is_learnt_stays_in_its_range(name: str, prices: Tensor) -> None:
    layer = LAYERS[name]()
    before = {key: value.clone() for key, value in layer.learned_parameters().items()}
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.3)
    for sign in (1, -1):
        for _ in range(10):
            optimizer.zero_grad()
            loss = sum(x.nansum() for x in output(name, layer, prices) if x.requires_grad)
            (sign * loss).backward()
            optimizer.step()
        learned = layer.learned_parameters()
        assert learned.keys() == before.keys()
        assert all((value > 0).all() for value in learned.values())
        assert name != "garch" or (learned["alpha"] + learned["beta"] < 1).all()
        assert any(not value.equal(before[key]) for key, value in learned.items())


@pytest.mark.filterwarnings("ignore")  # PyTorch's compilers warn of themselves
@pytest.mark.parametrize("name", LAYERS)
def test_layers_export_with_any_time(name: str, prices: Tensor) -> None:
    layer = LAYERS[name]()
    x = prices[None].float() if name in ("indicators", "regime") else ops.log_returns(prices)[None].float()
    program = torch.export.export(layer, (x[:, :200],), dynamic_shapes=({1: Dim.DYNAMIC},))
    torch.testing.assert_close(program.module()(x), layer(x), equal_nan=True)


def test_convolution_over_correlations_does_not_care_for_the_order_of_assets(prices: Tensor) -> None:
    torch.manual_seed(0)
    correlation = nn.CorrelationRegime(30, min_periods=20)(prices.float()).correlation
    correlation[100, 1] = correlation[100, :, 1] = torch.nan
    layer, order = nn.CorrelationConv(1, 6), torch.tensor([2, 0, 1])
    layer(correlation.unsqueeze(-3))  # running statistics of a training step
    found = layer.eval()(correlation.unsqueeze(-3))
    assert found.shape == (len(prices), 3, 6)
    assert found.isfinite().all()
    assert found[:19].eq(0).all()  # warm-up
    assert found[100, 1].eq(0).all()  # has no pair
    permuted = layer(correlation[:, order][:, :, order].unsqueeze(-3))
    torch.testing.assert_close(permuted, found[:, order])
    changed = correlation.clone()
    changed[200:] = 0.5
    assert torch.equal(layer(changed.unsqueeze(-3))[:200], found[:200])


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"EwmVolatility: halflives must be positive; got halflives=\[0.0\]"):
        nn.EwmVolatility([0.0])
    with pytest.raises(ValueError, match=r"Interval: the parameter must lie between 0 and 0\.9995"):
        nn.GarchVariance(persistence=1.0)
    with pytest.raises(ValueError, match="Indicators: fast must be >= 2; got fast=1"):
        nn.Indicators(fast=1)
    with pytest.raises(ValueError, match="softness must be > 0"):
        nn.CorrelationRegime(30, softness=0)
    with pytest.raises(ValueError, match=r"matrices must be \(\.\.\., K, N, N\) with K = 2; got matrices \(1, 3, 3\)"):
        nn.CorrelationConv(2, 4)(torch.ones(1, 3, 3))
