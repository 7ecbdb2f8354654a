"""Pretrained models as rows of a backtest: every interface, rolls, missing prices, no look-ahead, errors in words."""

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from pretrained_models import DECILES, MODELS, function
from torch import Tensor

from torchcommodity import data, forecast
from torchcommodity.data import Panel
from torchcommodity.forecast import pretrained
from torchcommodity.models import Har, HarConfig
from torchcommodity.training import ModelInputs, model_inputs, non_roll_returns

CONFIG = HarConfig(horizons=(5, 21))
START, STOP = 600, 610


class Recorder:
    """A pipeline that keeps its contexts and forecasts nothing in particular."""

    def __init__(self) -> None:
        self.contexts: list[Tensor] = []

    def __call__(self, contexts: list[Tensor], horizon: int, levels: Any) -> Tensor:
        self.contexts += contexts
        return function(contexts, horizon, levels)


@pytest.fixture(scope="module")
def inputs(backtest_panel: Panel) -> ModelInputs:
    return model_inputs(backtest_panel, ahead=21).before(STOP)


def past_prices(inputs: ModelInputs, row: int, symbol: int) -> np.ndarray:
    prices = inputs.prices[: row + 1, symbol].numpy()
    return prices[prices > 0]


@pytest.mark.parametrize("name", MODELS)
def test_pretrained_random_walk_is_its_formula(inputs: ModelInputs, name: str) -> None:
    result = pretrained(MODELS[name], name=name, context_length=250)(inputs, START, CONFIG)
    assert result.quantiles.shape == (10, 2, 2, 19)
    volatility = np.diff(np.log(past_prices(inputs, START + 3, 1)[-250:])).std(ddof=1)
    z = torch.special.ndtri(torch.tensor(CONFIG.levels, dtype=torch.double))
    torch.testing.assert_close(result.quantiles[3, 1, 1], volatility * 21**0.5 * z, rtol=1e-4, atol=1e-6)
    assert result.variance[3, 1, 1].item() == pytest.approx(21 * volatility**2, rel=1e-4)
    assert (result.quantiles.diff(dim=-1) >= 0).all()


def test_pretrained_contexts_are_past_prices_without_missing_rows(inputs: ModelInputs) -> None:
    recorder = Recorder()
    prices = inputs.prices.clone()
    prices[START - 3, 0] = torch.nan
    prices[START - 2, 0] = -37.63
    pretrained(recorder, context_length=40)(ModelInputs(prices), START, CONFIG)
    expected = past_prices(ModelInputs(prices), START, 0)[-40:]
    np.testing.assert_allclose(recorder.contexts[0].numpy(), expected, rtol=1e-6)


def test_pretrained_log_prices_are_ratios_to_the_last_price(inputs: ModelInputs) -> None:
    contexts: list[Tensor] = []

    def returns(x: list[Tensor], horizon: int, levels: Any) -> Tensor:  # negative quantiles are allowed
        contexts.extend(x)
        return torch.tensor(levels).sub(0.5).expand(len(x), horizon, len(levels))

    result = pretrained(returns, log_prices=True, context_length=100)(inputs, START, CONFIG)
    prices = past_prices(inputs, START, 0)[-100:]
    np.testing.assert_allclose(contexts[0].numpy(), np.log(prices / prices[-1]), atol=1e-6)
    torch.testing.assert_close(result.quantiles[0, 1, 0], torch.tensor(CONFIG.levels).double() - 0.5)


def test_pretrained_is_nan_before_the_warmup_and_between_steps(inputs: ModelInputs) -> None:
    prices = inputs.prices.clone()
    prices[:400, 0] = torch.nan
    result = pretrained(function, step=4)(ModelInputs(prices), START, CONFIG)
    assert result.quantiles[:, :, 0].isnan().all()
    valid = result.quantiles[:, :, 1].isfinite().all(-1).all(-1)
    assert valid.nonzero()[:, 0].tolist() == [0, 4, 8]


def test_pretrained_does_not_look_ahead(backtest_panel: Panel) -> None:
    panel = backtest_panel.with_contracts({"WTI": "CL", "BRENT": "BRN"})
    whole = model_inputs(panel, ahead=21).before(START + 14)
    prices = whole.prices.clone()
    prices[STOP:] = prices[STOP:].flip(0) * 3
    model = pretrained(function)
    expected, perturbed = (model(x, START, CONFIG) for x in (whole, whole._replace(prices=prices)))
    torch.testing.assert_close(perturbed.quantiles[:10], expected.quantiles[:10], rtol=0, atol=0, equal_nan=True)
    assert not torch.equal(perturbed.quantiles[10:], expected.quantiles[10:])
    before = model(whole.before(STOP), START, CONFIG)
    torch.testing.assert_close(before.quantiles, expected.quantiles[:10], rtol=0, atol=0, equal_nan=True)


def test_pretrained_contexts_of_a_future_have_no_roll_returns(backtest_panel: Panel) -> None:
    panel = backtest_panel[["WTI"]].with_contracts({"WTI": "CL"})
    inputs, recorder = model_inputs(panel, ahead=21).before(STOP), Recorder()
    result = pretrained(recorder, context_length=300)(inputs, START, CONFIG)
    returns = non_roll_returns(panel)[: START + 1, 0]
    returns = returns[returns.isfinite()]
    torch.testing.assert_close(recorder.contexts[0].log().diff(), returns[-299:].float(), rtol=0, atol=1e-6)
    assert recorder.contexts[0][-1].item() == pytest.approx(inputs.prices[START, 0].item())
    gaps = Har(1, CONFIG).adjust_rolls(inputs.unsqueeze()).shift[0, START:]  # (10, H, N)
    assert gaps.abs().max() > 0
    torch.testing.assert_close(result.quantiles[..., 9], gaps, rtol=0, atol=1e-6)  # the median of a random walk
    volatility = returns[-299:].std()
    adjusted = Har(1, CONFIG).adjust_rolls(inputs.unsqueeze())
    expected = torch.tensor(CONFIG.horizons) * volatility**2 + adjusted.gap_variance[0, START, :, 0]
    torch.testing.assert_close(result.variance[0, :, 0], expected, rtol=1e-4, atol=0)
    z = torch.special.ndtri(torch.tensor(0.95, dtype=torch.double))
    width = result.quantiles[0, :, 0, -1] - result.quantiles[0, :, 0, 0]
    torch.testing.assert_close(width, 2 * z * expected.sqrt(), rtol=1e-4, atol=0)


def test_pretrained_contexts_of_a_future_with_a_curve_are_the_contract_held(backtest_panel: Panel) -> None:
    panel = backtest_panel[["WTI"]].with_contracts({"WTI": "CL"})
    front = panel.values.plain()
    panel = panel.with_curve(torch.stack([front, 1.02 * front, 1.04 * front], -1))
    inputs, recorder = model_inputs(panel, ahead=21).before(STOP), Recorder()
    result = pretrained(recorder, context_length=300)(inputs, START, CONFIG)
    prices = past_prices(inputs, START, 0)[-300:]
    rolls = panel.rolls(ahead=0)[: START + 1, 0][inputs.prices[: START + 1, 0] > 0][-299:] > 0
    expected = np.diff(np.log(prices)) - np.where(rolls, np.log(1.02), 0)
    np.testing.assert_allclose(recorder.contexts[0].log().diff().numpy(), expected, atol=2e-6)
    calendar = panel.roll_months(ahead=21)[:, 0] > 0
    counts = torch.tensor([int(calendar[row + 1 : row + 22].sum()) for row in range(START, STOP)])
    gaps = counts.double() * np.log(1.02)
    torch.testing.assert_close(result.quantiles[:, 1, 0, 9], gaps, rtol=0, atol=1e-6)


@pytest.mark.parametrize("levels", [[0.5], [0.05, 0.5], [0.01, 0.5, 0.99]])
def test_pretrained_quantiles_at_other_levels(inputs: ModelInputs, levels: list[float]) -> None:
    config = HarConfig(horizons=(5,), levels=tuple(levels))
    exact, deciles = (pretrained(MODELS[name])(inputs, START, config).quantiles for name in ("function", "timesfm-3"))
    torch.testing.assert_close(deciles, exact, rtol=1e-4, atol=1e-5)


def test_pretrained_function_with_levels_of_its_own(inputs: ModelInputs) -> None:
    def deciles(contexts: list[Tensor], horizon: int, levels: Any) -> np.ndarray:
        assert list(levels) == DECILES
        return function(contexts, horizon, DECILES).numpy()

    result, expected = (pretrained(f, levels=own) for f, own in ((deciles, DECILES), (function, None)))
    quantiles = (model(inputs, START, CONFIG).quantiles for model in (result, expected))
    torch.testing.assert_close(*quantiles, rtol=1e-4, atol=1e-5)


def test_pretrained_sorts_quantiles_that_cross(inputs: ModelInputs) -> None:
    expected = pretrained(function)(inputs, START, CONFIG).quantiles
    crossed = pretrained(lambda *x: function(*x).flip(-1))(inputs, START, CONFIG).quantiles
    assert torch.equal(crossed, expected)


def test_pretrained_batches_and_progress(inputs: ModelInputs) -> None:
    done: list[tuple[int, int, str]] = []
    model = pretrained(function, name="walk", batch_size=8, progress=lambda *event: done.append(event))
    expected = pretrained(function)(inputs, START, CONFIG).quantiles
    torch.testing.assert_close(model(inputs, START, CONFIG).quantiles, expected)
    assert done == [(8, 20, "walk"), (16, 20, "walk"), (20, 20, "walk")]


def test_pretrained_is_picklable() -> None:
    assert pickle.loads(pickle.dumps(pretrained(function, step=5))).step == 5


def shorter(contexts: list[Tensor], horizon: int, levels: Any) -> Tensor:
    return function(contexts, horizon - 1, levels)


def missing(contexts: list[Tensor], horizon: int, levels: Any) -> Tensor:
    quantiles = function(contexts, horizon, levels)
    quantiles[1, 4, 2] = torch.nan
    return quantiles


def zero(contexts: list[Tensor], horizon: int, levels: Any) -> Tensor:
    quantiles = function(contexts, horizon, levels)
    quantiles[:, 20, 0] = 0
    return quantiles


class Descending:
    quantiles = DECILES[::-1]

    def predict_quantiles(self, inputs: Any, prediction_length: int, quantile_levels: Any) -> tuple[Tensor, None]:
        return function(inputs, prediction_length, quantile_levels), None


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (shorter, r"must return quantiles \(contexts, steps, levels\) = \(20, 21, 19\); got \(20, 20, 19\)"),
        (missing, "must return finite quantiles; got nan in context 1 of .* values at step 5, level 0.15"),
        (
            zero,
            r"must be positive; got 0 at level 0.05, 21 rows after a price of [0-9.]+; .*log_prices=True",
        ),
        (Descending(), r"needs two or more ascending levels between 0 and 1; got \[0.9, 0.8,"),
    ],
)
def test_pretrained_rejects_a_wrong_forecast(inputs: ModelInputs, pipeline: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pretrained(pipeline, name="walk")(inputs, START, CONFIG)


def test_pretrained_rejects_bad_arguments() -> None:
    with pytest.raises(TypeError, match=r"must have predict_quantiles .*; got str"):
        pretrained("amazon/chronos-2")
    with pytest.raises(ValueError, match="step must be at least 1; got 0"):
        pretrained(function, step=0)


def test_pretrained_variances_are_the_last_forecast_of_each_row(backtest_panel: Panel) -> None:
    panel = backtest_panel.between("2008-01-01", "2010-12-31").with_contracts({"WTI": "CL"})
    variances = pretrained(MODELS["tirex-2"], name="walk", step=7, context_length=200).variances(panel, [5, 63])
    assert variances.shape == (len(panel), 2, 2, 1)
    assert variances[:252].isnan().all()
    row = 700 // 7 * 7
    expected = non_roll_returns(panel)[: row + 1, 0]
    expected = expected[expected.isfinite()][-199:].var()
    torch.testing.assert_close(variances[row : row + 7, :, 0, 0], expected.expand(7, 2), rtol=1e-4, atol=0)
    past = panel.between(None, str(panel.dates[row + 2]))
    again = pretrained(MODELS["tirex-2"], step=7, context_length=200).variances(past, [5, 63])
    torch.testing.assert_close(again, variances[: row + 3], rtol=0, atol=0, equal_nan=True)


def test_pretrained_is_a_variance_term_of_a_forecaster(backtest_panel: Panel) -> None:
    panel, walk = backtest_panel.between("2008-01-01", "2010-12-31"), pretrained(function, name="walk", step=21)
    forecaster = forecast.fit(panel, covariates=walk)
    har = forecaster.model.har
    position = har.config.terms.index("walk")
    assert position == len(har.config.terms) - 2
    predict = forecaster.predict(panel, covariates=walk).log_returns
    har.mix[:, position] += 1
    assert (forecaster.predict(panel, covariates=walk).log_returns.diff(dim=-1) > predict.diff(dim=-1)).all()
    with pytest.raises(ValueError, match="walk"):
        forecaster.predict(panel)


@pytest.mark.slow
def test_pretrained_is_a_row_of_a_backtest() -> None:
    panel = data.embedded(["WTI"]).between("2010-01-01", "2014-12-31").with_contracts({"WTI": "CL"})
    walk = pretrained(MODELS["chronos-2"], name="walk", step=5)
    result = forecast.backtest(panel, first_year=2014, baselines={**forecast.baselines(), "walk": walk})
    rows = {row.model: row for row in result.scores.rows if row.horizon == 21}
    assert rows["walk"].n == rows["har"].n == int(result.targets[::5, 1].isfinite().sum())
    assert 0 < rows["walk"].pinball < 2 * rows["unconditional"].pinball


def test_pretrained_real_futures_have_the_expected_gap_of_the_curve(futures: Panel) -> None:
    inputs = model_inputs(futures, ahead=21)
    result = pretrained(function, step=50)(inputs, len(futures) - 100, CONFIG)
    gaps = Har(len(futures.symbols), CONFIG).adjust_rolls(inputs.unsqueeze()).shift[0, -100::50]
    median = result.quantiles[::50, ..., 9]
    assert median.isfinite().any()
    torch.testing.assert_close(median, torch.where(median.isnan(), torch.nan, gaps), atol=1e-5, rtol=0, equal_nan=True)
