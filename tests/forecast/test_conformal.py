"""Conformal correction: MAPIE's numbers, coverage of exchangeable rows, and no look-ahead."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from torchcommodity import data, forecast
from torchcommodity.forecast import Backtest, conformal
from torchcommodity.forecast._conformal import corrected, corrections

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
Z = torch.special.ndtri(torch.tensor(LEVELS, dtype=torch.double))
MODEL, NAME = "har-garch", "har-garch conformal"


@pytest.fixture(scope="module")
def result() -> Backtest:
    panel = data.embedded(["WTI", "BRENT"]).between("2005-01-01", "2010-12-31")
    return forecast.backtest(panel, first_year=2008)


class ConstantOffset:
    """A fitted regressor of scikit-learn's protocol: the quantile is `offset` above the only feature."""

    def __init__(self, offset: float) -> None:
        self.offset, self.n_features_in_ = offset, 1

    def fit(self, X: np.ndarray, y: np.ndarray) -> "ConstantOffset":
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return X[:, 0] + self.offset

    def __sklearn_is_fitted__(self) -> bool:
        return True


@pytest.mark.parametrize("n", [100, 110, 199, 333])
@pytest.mark.parametrize("spread", [0.4, 1.0, 2.5])
def test_corrections_equal_conformalized_quantile_regression_of_mapie(n: int, spread: float) -> None:
    regression = pytest.importorskip("mapie.regression")
    random = np.random.default_rng(0)
    x, y = random.normal(size=n + 50), random.standard_t(4, size=n + 50)
    q = torch.from_numpy(x)[:, None] + spread * Z
    actual = corrected(q[n:], corrections(q[:n], torch.from_numpy(x + y)[:n], LEVELS))
    estimators = [ConstantOffset((spread * Z[k]).item()) for k in (0, -1, 2)]
    mapie = regression.ConformalizedQuantileRegressor(estimators, confidence_level=0.9, prefit=True)
    mapie.conformalize(x[:n, None], (x + y)[:n])
    _, interval = mapie.predict_interval(x[n:, None], symmetric_correction=True)
    np.testing.assert_allclose(actual[:, [0, -1]].numpy(), interval[:, :, 0], rtol=0, atol=1e-9)


def test_corrections_use_the_rank_of_the_finite_sample() -> None:
    # scores 1 .. 110 over the width: the ceil(111 x 0.9) = 100th and the ceil(111 x 0.5) = 56th
    q = torch.tensor([-1.0, -0.5, 0.0, 0.5, 1.0], dtype=torch.double).expand(110, -1)
    y = 1 + torch.arange(1.0, 111.0, dtype=torch.double)
    torch.testing.assert_close(corrections(q, y, LEVELS), torch.tensor([100 / 2, 56.5 / 2]).double())


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_corrected_quantiles_cover_exchangeable_rows(factor: float) -> None:
    random = torch.Generator().manual_seed(0)
    scale = torch.rand(40000, generator=random, dtype=torch.double).exp()
    y = scale * torch.randn(40000, generator=random, dtype=torch.double)
    q = factor * scale[:, None] * Z
    actual = corrected(q[20000:], corrections(q[:20000], y[:20000], LEVELS))
    inside = (y[20000:, None] >= actual[:, :2]) & (y[20000:, None] <= actual.flip(-1)[:, :2])
    assert inside.double().mean(0).tolist() == pytest.approx([0.9, 0.5], abs=0.01)
    assert torch.equal(actual[:, 2], q[20000:, 2])


def test_conformal_does_not_look_ahead(result: Backtest) -> None:
    cut = 300
    expected = conformal(result, window=252, step=20).quantiles[NAME]
    quantiles, targets = result.quantiles[MODEL].clone(), result.targets.clone()
    order = torch.randperm(len(targets) - cut, generator=torch.Generator().manual_seed(0)) + cut
    quantiles[cut:] = quantiles[order]
    for i, h in enumerate(result.horizons):
        targets[cut - h + 1 :, i] = targets[cut - h + 1 :, i].flip(0) * 9  # they end after row `cut`
    shuffled = replace(result, quantiles={MODEL: quantiles}, targets=targets)
    other = conformal(shuffled, window=252, step=20).quantiles[NAME]
    assert torch.equal(other[:cut], expected[:cut])
    assert not torch.equal(other[cut:], expected[cut:])
    past = replace(result, quantiles={MODEL: quantiles[:cut]}, targets=targets[:cut])
    assert torch.equal(conformal(past, window=252, step=20).quantiles[NAME], expected[:cut])


def test_conformal_correction_uses_the_targets_that_have_ended(result: Backtest) -> None:
    q, start, window, h = result.quantiles[MODEL], 400, 200, 21
    past = slice(start + 1 - h - window, start + 1 - h)
    by = corrections(q[past, 1], result.targets[past, 1], result.levels)
    actual = conformal(result, window=window, step=100).quantiles[NAME]
    assert by.abs().sum() > 0
    torch.testing.assert_close(actual[start : start + 100, 1], corrected(q[start : start + 100, 1], by))
    # two symbols, and fewer than 100 targets that have ended by row 0
    assert torch.equal(actual[:100], q[:100])


def test_corrections_do_not_depend_on_the_scale_of_a_symbol(result: Backtest) -> None:
    by = torch.tensor([1.0, 1000.0], dtype=torch.double)
    q, y = result.quantiles[MODEL][:, 0], result.targets[:, 0]
    scaled = corrections(q * by[:, None], y * by, result.levels)
    torch.testing.assert_close(scaled, corrections(q, y, result.levels))


def test_corrections_skip_missing_targets(result: Backtest) -> None:
    q, y = result.quantiles[MODEL][:, 0], result.targets[:, 0].clone()
    y[::3] = torch.nan
    valid = torch.isfinite(y[:, 0]) & torch.isfinite(y[:, 1])
    sparse = y.clone()
    sparse[~valid] = torch.nan
    torch.testing.assert_close(corrections(q, sparse, result.levels), corrections(q[valid], y[valid], result.levels))
    assert corrections(q[:20], y[:20], result.levels).eq(0).all()
    assert corrected(torch.full((5,), torch.nan), torch.ones(2)).isnan().all()


def test_conformal_model_is_scored(result: Backtest) -> None:
    scores = forecast.score(conformal(result), model=NAME, reference=MODEL).to_pandas()
    rows = scores.set_index(["model", "horizon"])
    assert rows.loc[(MODEL, 5)].n == rows.loc[(NAME, 5)].n
    assert rows.loc[(NAME, 5)].skill != 0


def test_conformal_rejects_bad_arguments(result: Backtest) -> None:
    with pytest.raises(ValueError, match=r"model must be one of har-garch, .*; got 'arima'"):
        conformal(result, "arima")
    with pytest.raises(ValueError, match="window and step must be at least 1; got window=0, step=21"):
        conformal(result, window=0)
    with pytest.raises(ValueError, match=r"levels must be symmetric about 1/2; got \(0.1, 0.5\)"):
        corrections(torch.zeros(3, 2), torch.zeros(3), (0.1, 0.5))
