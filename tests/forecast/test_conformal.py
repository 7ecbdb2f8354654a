"""Conformal correction: MAPIE's numbers, coverage where rows are exchangeable, and nothing of the future."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from torchcommodity import data, forecast
from torchcommodity.forecast import Backtest, conformal
from torchcommodity.forecast._conformal import corrected, corrections

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
Z = torch.special.ndtri(torch.tensor(LEVELS, dtype=torch.double))


@pytest.fixture(scope="module")
def walked() -> Backtest:
    panel = data.embedded().select(["WTI", "SP500"]).between("2005-01-01", "2010-12-31")
    return forecast.backtest(panel, first_year=2008)


class Known:
    """A fitted regressor of scikit-learn's protocol: the quantile is `at` above the only feature."""

    def __init__(self, at: float) -> None:
        self.at, self.n_features_in_ = at, 1

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Known":
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return X[:, 0] + self.at

    def __sklearn_is_fitted__(self) -> bool:
        return True


@pytest.mark.parametrize("n", [100, 110, 199, 333])
@pytest.mark.parametrize("spread", [0.4, 1.0, 2.5])
def test_it_is_conformalized_quantile_regression_as_mapie_has_it(n: int, spread: float) -> None:
    regression = pytest.importorskip("mapie.regression")
    random = np.random.default_rng(0)
    x, y = random.normal(size=n + 50), random.standard_t(4, size=n + 50)
    q = torch.from_numpy(x)[:, None] + spread * Z
    found = corrected(q[n:], corrections(q[:n], torch.from_numpy(x + y)[:n], LEVELS))
    estimators = [Known((spread * Z[k]).item()) for k in (0, -1, 2)]
    mapie = regression.ConformalizedQuantileRegressor(estimators, confidence_level=0.9, prefit=True)
    mapie.conformalize(x[:n, None], (x + y)[:n])
    _, interval = mapie.predict_interval(x[n:, None], symmetric_correction=True)
    np.testing.assert_allclose(found[:, [0, -1]].numpy(), interval[:, :, 0], rtol=0, atol=1e-9)


def test_the_rank_is_that_of_the_finite_sample() -> None:
    # scores 1 .. 110 over the width: the ceil(111 x 0.9) = 100th and the ceil(111 x 0.5) = 56th
    q = torch.tensor([-1.0, -0.5, 0.0, 0.5, 1.0], dtype=torch.double).expand(110, -1)
    y = 1 + torch.arange(1.0, 111.0, dtype=torch.double)
    torch.testing.assert_close(corrections(q, y, LEVELS), torch.tensor([100 / 2, 56.5 / 2]).double())


def test_it_covers_where_rows_are_exchangeable() -> None:
    random = torch.Generator().manual_seed(0)
    scale = torch.rand(40000, generator=random, dtype=torch.double).exp()
    y = scale * torch.randn(40000, generator=random, dtype=torch.double)
    for wrong in (0.5, 2.0):
        q = wrong * scale[:, None] * Z
        found = corrected(q[20000:], corrections(q[:20000], y[:20000], LEVELS))
        inside = (y[20000:, None] >= found[:, :2]) & (y[20000:, None] <= found.flip(-1)[:, :2])
        assert inside.double().mean(0).tolist() == pytest.approx([0.9, 0.5], abs=0.01)
        assert torch.equal(found[:, 2], q[20000:, 2])


def test_the_past_alone_decides(walked: Backtest) -> None:
    cut = 300
    plain = conformal(walked, window=252, every=20).quantiles["har-garch conformal"]
    quantiles, targets = walked.quantiles["har-garch"].clone(), walked.targets.clone()
    order = torch.randperm(len(targets) - cut, generator=torch.Generator().manual_seed(0)) + cut
    quantiles[cut:] = quantiles[order]
    for i, h in enumerate(walked.horizons):
        targets[cut - h + 1 :, i] = targets[cut - h + 1 :, i].flip(0) * 9  # they end after row `cut`
    shuffled = replace(walked, quantiles={"har-garch": quantiles}, targets=targets)
    other = conformal(shuffled, window=252, every=20).quantiles["har-garch conformal"]
    assert torch.equal(other[:cut], plain[:cut])
    assert not torch.equal(other[cut:], plain[cut:])
    ended = replace(walked, quantiles={"har-garch": quantiles[:cut]}, targets=targets[:cut])
    assert torch.equal(conformal(ended, window=252, every=20).quantiles["har-garch conformal"], plain[:cut])


def test_a_correction_is_that_of_the_targets_that_had_ended(walked: Backtest) -> None:
    q, start, window, h = walked.quantiles["har-garch"], 400, 200, 21
    past = slice(start + 1 - h - window, start + 1 - h)
    by = corrections(q[past, 1], walked.targets[past, 1], walked.levels)
    found = conformal(walked, window=window, every=100).quantiles["har-garch conformal"]
    assert by.abs().sum() > 0
    torch.testing.assert_close(found[start : start + 100, 1], corrected(q[start : start + 100, 1], by))
    # two symbols, and fewer than 100 targets that have ended by row 0
    assert torch.equal(found[:100], q[:100])


def test_a_symbol_scaled_has_the_same_correction(walked: Backtest) -> None:
    by = torch.tensor([1.0, 1000.0], dtype=torch.double)
    q, y = walked.quantiles["har-garch"][:, 0], walked.targets[:, 0]
    scaled = corrections(q * by[:, None], y * by, walked.levels)
    torch.testing.assert_close(scaled, corrections(q, y, walked.levels))


def test_what_is_missing_takes_no_part(walked: Backtest) -> None:
    q, y = walked.quantiles["har-garch"][:, 0], walked.targets[:, 0].clone()
    y[::3] = torch.nan
    kept = torch.isfinite(y[:, 0]) & torch.isfinite(y[:, 1])
    some = y.clone()
    some[~kept] = torch.nan
    torch.testing.assert_close(corrections(q, some, walked.levels), corrections(q[kept], y[kept], walked.levels))
    assert corrections(q[:20], y[:20], walked.levels).eq(0).all()
    assert corrected(torch.full((5,), torch.nan), torch.ones(2)).isnan().all()


def test_the_score_compares_it(walked: Backtest) -> None:
    scores = forecast.score(conformal(walked), model="har-garch conformal", reference="har-garch").to_pandas()
    rows = scores.set_index(["model", "horizon"])
    assert rows.loc[("har-garch", 5)].n == rows.loc[("har-garch conformal", 5)].n
    assert rows.loc[("har-garch conformal", 5)].skill != 0


def test_what_cannot_be_corrected_is_refused_in_words(walked: Backtest) -> None:
    with pytest.raises(ValueError, match=r"model must be one of har-garch, .*; got 'arima'"):
        conformal(walked, "arima")
    with pytest.raises(ValueError, match="window and every must be at least 1; got 0, 21"):
        conformal(walked, window=0)
    with pytest.raises(ValueError, match=r"levels must be symmetric about 1/2; got \(0.1, 0.5\)"):
        corrections(torch.zeros(3, 2), torch.zeros(3), (0.1, 0.5))
