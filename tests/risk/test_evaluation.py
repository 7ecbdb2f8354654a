"""Evaluation of a backtest: rows without overlap, records against the tests on them, synthetic prices."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from torchcommodity.data import embedded
from torchcommodity.forecast import Backtest, score
from torchcommodity.risk import (
    evaluate_tails,
    kupiec_test,
    log_scores,
    pinball_by_date,
    pit_histograms,
)

LEVELS = tuple(np.round(np.arange(0.05, 1, 0.05), 2).tolist())
HORIZONS = (1, 5)


@pytest.fixture(scope="module")
def backtest() -> Backtest:
    """Normal quantiles of real log-returns, with the volatility of all rows: `wide` doubles it."""
    prices = embedded(["WTI", "BRENT"]).between("2016-01-01", "2017-12-31")
    x = prices.values.plain()
    x = x[torch.isfinite(x).all(1)].log()
    dates = prices.dates[torch.isfinite(prices.values.plain()).all(1).numpy()]
    targets = torch.full((len(x), 2, 2), torch.nan, dtype=torch.float64)
    ends = np.full(targets.shape, np.datetime64("NaT", "D"), dtype="datetime64[D]")
    for i, h in enumerate(HORIZONS):
        targets[:-h, i], ends[:-h, i] = x[h:] - x[:-h], dates[h:, None]
    z = torch.from_numpy(stats.norm.ppf(LEVELS))
    scale = 0.02 * torch.tensor(HORIZONS).double().sqrt()[:, None, None]
    normal = (scale * z).expand(len(x), 2, 2, -1)
    variance = scale.square()[..., 0].expand(len(x), 2, 2)
    return Backtest(
        model="normal", origins=dates, symbols=("WTI", "BRENT"), horizons=HORIZONS, levels=LEVELS, targets=targets,
        target_dates=ends, quantiles={"normal": normal, "wide": 2 * normal},
        variances={"normal": variance, "wide": 4 * variance}, fits=(), mix={},
    )  # fmt: skip


def test_evaluate_tails_tests_rows_whose_targets_do_not_overlap(backtest: Backtest) -> None:
    records = {(r.symbol, r.horizon): r for r in evaluate_tails(backtest)}
    record, rows = records["BRENT", 5], slice(0, len(backtest.origins) - 5, 5)
    returns = backtest.targets[rows, 1, 1].expm1()
    var = np.full(len(returns), -np.expm1(0.02 * 5**0.5 * stats.norm.ppf(0.05)))
    kupiec = kupiec_test(returns, var, 0.95)
    assert (record.observations, record.exceedances) == (kupiec.observations, kupiec.exceedances)
    assert record.kupiec_p_value == pytest.approx(kupiec.p_value)
    assert record.forecasts == len(backtest.origins) - 5
    assert record.observations == len(returns)
    assert np.isfinite([record.z2, record.z2_p_value, record.christoffersen_p_value, record.fissler_ziegel]).all()


def test_evaluate_tails_of_a_short_position_has_the_rises(backtest: Backtest) -> None:
    mirrored = replace(
        backtest,
        targets=-backtest.targets,
        quantiles={name: -q.flip(-1) for name, q in backtest.quantiles.items()},
    )
    short, long = evaluate_tails(backtest, side="short")[0], evaluate_tails(mirrored)[0]
    assert (short.exceedances, short.observations, short.side) == (long.exceedances, long.observations, "short")


def test_evaluate_tails_of_a_wide_forecast_has_fewer_exceedances_and_a_higher_loss(backtest: Backtest) -> None:
    normal, wide = (evaluate_tails(backtest, model=name)[1] for name in ("normal", "wide"))
    assert wide.exceedances < normal.exceedances
    assert wide.fissler_ziegel > normal.fissler_ziegel
    assert wide.kupiec_p_value < 0.05


def test_evaluate_tails_leaves_out_horizons_without_an_outcome(backtest: Backtest) -> None:
    targets = backtest.targets.clone()
    targets[:, 1] = torch.nan
    assert [r.horizon for r in evaluate_tails(replace(backtest, targets=targets))] == [1, 1]


def test_evaluate_tails_leaves_forecasts_of_a_certain_gain_out_of_the_scores_of_es(backtest: Backtest) -> None:
    gains = backtest.quantiles["normal"].clone()
    gains[10:30] += 1.0
    some, all_ = (replace(backtest, quantiles={"normal": q}) for q in (gains, backtest.quantiles["normal"] + 1.0))
    assert np.isfinite([evaluate_tails(some)[0].z2, evaluate_tails(some)[0].fissler_ziegel]).all()
    record = evaluate_tails(all_)[0]
    assert (record.exceedances, record.forecasts) == (record.observations, len(backtest.origins) - 1)
    assert np.isnan([record.z2, record.z2_p_value, record.fissler_ziegel]).all()


def test_pit_histograms_count_outcomes_between_the_quantiles(backtest: Backtest) -> None:
    record = pit_histograms(backtest, "wide")[0]
    below = (backtest.targets[:-1, 0, 0, None] <= backtest.quantiles["wide"][:-1, 0, 0]).double().mean(0)
    assert np.cumsum(record.shares)[:-1] == pytest.approx(below.numpy())
    assert (record.symbol, record.horizon, record.forecasts) == ("WTI", 1, len(backtest.origins) - 1)
    assert record.p_value < 1e-6  # twice as wide
    assert pit_histograms(backtest)[0].p_value > record.p_value


def test_log_scores_prefer_the_right_width_on_common_rows(backtest: Backtest) -> None:
    table = log_scores(backtest)
    assert table.shape == (2, 2)
    assert (table.loc["normal"] > table.loc["wide"]).all()
    quantiles = {**backtest.quantiles, "wide": backtest.quantiles["wide"].clone()}
    quantiles["wide"][:200] = torch.nan
    part = log_scores(replace(backtest, quantiles=quantiles))
    assert part.loc["normal", 1] == pytest.approx(
        log_scores(replace(backtest, **_last(backtest, 200))).loc["normal", 1]
    )


def _last(backtest: Backtest, first: int) -> dict[str, object]:
    return {
        "origins": backtest.origins[first:],
        "targets": backtest.targets[first:],
        "target_dates": backtest.target_dates[first:],
        "quantiles": {name: q[first:] for name, q in backtest.quantiles.items()},
        "variances": {name: v[first:] for name, v in backtest.variances.items()},
    }


def test_pinball_by_date_is_the_loss_of_the_scores(backtest: Backtest) -> None:
    table = pinball_by_date(backtest, 5)
    row = next(row for row in score(backtest, reference="wide").rows if (row.model, row.horizon) == ("normal", 5))
    assert table["normal"].mean() == pytest.approx(row.pinball)
    assert table.index[0] == backtest.origins[0]


def test_evaluations_reject_bad_input(backtest: Backtest) -> None:
    with pytest.raises(ValueError, match=r"evaluate_tails: model must be one of normal, wide; got model='har'"):
        evaluate_tails(backtest, model="har")
    with pytest.raises(ValueError, match=r"evaluate_tails: side must be 'long' or 'short'; got side='flat'"):
        evaluate_tails(backtest, side="flat")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"pinball_by_date: horizon must be one of 1 \(1d\), 5 \(1w\); got 21"):
        pinball_by_date(backtest, 21)
    synthetic = replace(backtest, symbols=("synthetic:WTI", "synthetic:BRENT"))
    for evaluate in (evaluate_tails, pit_histograms, log_scores):
        with pytest.raises(ValueError, match=f"{evaluate.__name__}: expected real prices; got synthetic ones"):
            evaluate(synthetic)
