"""Forecasts of spreads: prices of any sign through fit, predict, live updates, simulation and backtest."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from embedded_spreads import brent_wti, diesel_basis

from torchcommodity import data, forecast, portfolio, report, risk, scenarios, scoreboard
from torchcommodity.data import Panel
from torchcommodity.export import Artifact
from torchcommodity.forecast import Backtest, Forecaster
from torchcommodity.models import HarLstmConfig
from torchcommodity.report._markup import plain_text
from torchcommodity.report._section_outlook import outlook_section
from torchcommodity.training import FitConfig, TrainConfig


@pytest.fixture(scope="module")
def spread() -> Panel:
    return brent_wti()


@pytest.fixture(scope="module")
def forecaster(spread: Panel) -> Forecaster:
    return forecast.fit(spread)


@pytest.fixture(scope="module")
def backtest(spread: Panel) -> Backtest:
    return forecast.backtest(spread, first_year=2017)


def test_forecast_of_a_spread_has_prices_and_says_why_no_log_returns(forecaster: Forecaster, spread: Panel) -> None:
    result = forecaster.predict(spread)
    assert result.signed == forecaster.signed == ("SPREAD",)
    own = [[f for f in x.findings if f.symbol == "SPREAD"] for x in (result, spread)]
    assert own[0] == own[1]  # signed prices, once
    assert result.prices.isfinite().all()
    assert (result.prices.diff(dim=-1) > 0).all()
    assert (result.prices[-1, 0, 0] < 0).item()
    assert result.log_returns.isnan().all()
    assert result.to_pandas().attrs["log_return"] == "NaN for SPREAD: prices that may be negative have none"
    assert [f.kind for f in result.findings if f.symbol == "SPREAD"] == ["signed prices"]
    assert "asinh(P / S) in place of ln P for SPREAD (" in forecaster.record.note


def test_file_of_a_spread_gives_the_same_bits(forecaster: Forecaster, spread: Panel, tmp_path: Path) -> None:
    forecaster.save(tmp_path / "spread.safetensors")
    loaded = Forecaster.load(tmp_path / "spread.safetensors")
    assert torch.equal(loaded.predict(spread).prices, forecaster.predict(spread).prices)


@pytest.mark.parametrize("network", [False, True])
def test_step_of_a_spread_has_the_bits_of_predict(spread: Panel, network: bool) -> None:
    config = FitConfig(HarLstmConfig(), TrainConfig(epochs=1)) if network else None
    model = forecast.fit(spread.between("2013-01-01"), config)
    state = model.start(spread.between("2013-01-01", "2018-12-20"))
    for day in ("2018-12-21", "2018-12-24"):
        state, live = model.step(state, spread.between(day, "2018-12-28" if day == "2018-12-24" else day))
    assert torch.equal(live.prices, model.predict(spread.between("2013-01-01", "2018-12-28")).prices)


def test_forecaster_makes_its_spread_of_the_legs(forecaster: Forecaster, spread: Panel) -> None:
    legs = data.embedded(["BRENT", "WTI"])
    now, before = legs.between("2010-01-01", "2018-12-31"), legs.between("2010-01-01", "2018-12-20")
    expected = forecaster.predict(spread)
    result = forecaster.predict(now)
    assert (result.symbols, result.units) == (expected.symbols, expected.units)
    assert torch.equal(result.prices, expected.prices)
    _, live = forecaster.step(forecaster.start(before), legs.between("2018-12-21", "2018-12-31"))
    assert torch.equal(live.prices, expected.prices)
    assert torch.equal(Artifact.from_forecaster(forecaster).predict(now).prices, expected.prices)
    with pytest.raises(ValueError, match="predict: prices must have 'SPREAD', or the legs of this spread, BRENT-WTI"):
        forecaster.predict(now.select(["WTI"]))


def test_step_on_a_row_without_a_leg_is_predict() -> None:
    legs = data.embedded(["BRENT", "WTI"]).with_references(None).between("2010-01-01", "2015-12-31")
    panel = legs.join(data.spread(legs, "BRENT-WTI"))
    fitted = forecast.fit(panel)
    values = panel.values.plain().clone()
    values[-1, [0, 2]] = torch.nan  # no price of Brent
    last = replace(panel, values=values)
    _, live = fitted.step(
        fitted.start(panel.between(None, panel.dates[-2])), last.select(["BRENT", "WTI"]).between(panel.dates[-1])
    )
    assert torch.equal(live.prices, fitted.predict(last).prices)


def test_logs_beside_a_spread_are_nearly_those_of_a_fit_without_it(spread: Panel) -> None:
    oil = data.embedded(["WTI", "HENRY_HUB"]).with_references(None).between("2010-01-01", "2018-12-31")
    mixed, alone = (forecast.fit(panel) for panel in (oil.join(spread), oil))
    both, single = mixed.predict(oil.join(spread)), alone.predict(oil)
    assert both.symbols == ("WTI", "HENRY_HUB", "SPREAD")
    assert both.log_returns[:, :2].isfinite().all()
    width = (single.prices[:, :, -1] - single.prices[:, :, 0]).unsqueeze(-1)
    assert ((both.prices[:, :2] - single.prices) / width).abs().max() < 0.06


def test_one_negative_price_stays_in_logs_with_a_finding() -> None:
    wti = data.embedded(["WTI"]).with_references(None).between("2015-01-01", "2020-12-31")
    fitted = forecast.fit(wti)
    assert fitted.scale is None
    (finding,) = (f for f in fitted.predict(wti).findings if f.kind == "nonpositive")
    assert (finding.date, finding.value) == ("2020-04-20", "-36.98")


def test_prices_below_zero_after_a_fit_in_logs_are_a_finding() -> None:
    legs = data.embedded(["ULSD_NYH", "HEATING_OIL_NYH"])
    panel = data.spread(legs, "ULSD_NYH-HEATING_OIL_NYH", unit="$/bbl", name="SULFUR")
    before = panel.between(None, "2009-12-30")  # with the first price below zero
    assert not [f for f in data.signed_findings(before.findings, data.price_forms(before)) if f.kind == "signed prices"]
    fitted = forecast.fit(before)
    assert fitted.scale is None
    now = panel.between(None, "2022-10-19")
    result = fitted.predict(now)
    (finding,) = (f for f in result.findings if f.kind in ("signed prices", "nonpositive", "negative prices"))
    words = "negative prices SULFUR 2022-10-19: -15.75, and 7 before; the fit took logs, 8 times (left out: it is "
    assert str(finding).startswith(words)
    assert result.last[0] == pytest.approx(8.4)  # of the day before
    assert Artifact.from_forecaster(fitted).predict(now).findings == result.findings


def test_signed_symbols_are_spreads_whatever_their_prices() -> None:
    brent = data.embedded(["BRENT"]).with_references(None).between("2010-01-01", "2018-12-31")
    fitted, logs = forecast.fit(brent, signed=["BRENT"]), forecast.fit(brent)
    assert fitted.signed == ("BRENT",)
    assert "signed; 0 of" in fitted.record.note
    ours, others = (x.predict(brent).quantile(0.5, "1w")["BRENT"] for x in (fitted, logs))
    assert ours == pytest.approx(others, rel=0.01)
    with pytest.raises(ValueError, match="fit: signed must name symbols of the prices, BRENT; got CRACK"):
        forecast.fit(brent, signed=["CRACK"])


def test_scale_of_constant_prices_and_curves_of_products_are_refused(spread: Panel) -> None:
    with pytest.raises(ValueError, match="the prices of every symbol must vary; got constant prices for SPREAD"):
        forecast.fit(replace(spread, values=torch.full_like(spread.values.plain(), -3.0), findings=()))
    late = spread.values.plain().clone()
    rows = int((spread.dates < np.datetime64("2016-01-01")).sum())
    late[:rows] = -3.0
    wti = data.embedded(["WTI"]).with_references(None).between("2010-01-01", "2018-12-31")
    mixed = wti.join(replace(spread, values=late, findings=()))
    with pytest.raises(ValueError, match=r"backtest: prices that may be negative must change.*no change of SPREAD"):
        forecast.backtest(mixed, first_year=2016)
    alone = replace(spread, values=late, findings=()).between(None, "2017-12-31")
    words = r"than 378 prices by 2015-12-31 that vary after the first 252; got SPREAD \d+ without a change"
    with pytest.raises(ValueError, match=words):
        forecast.backtest(alone, signed=["SPREAD"], first_year=2016)


def test_location_of_a_spread_is_in_its_unit(forecaster: Forecaster, spread: Panel) -> None:
    location = forecaster.location(spread)
    parts = [p for p in location.parts if p.horizon == 63]
    assert parts[0].source == "average of a quarter"
    assert np.isnan(parts[0].log_return)
    assert parts[0].deviation * parts[0].change < 0  # it returns
    moved = forecaster.predict(spread).prices[2, 0, 9] - spread.values.plain()[-1, 0]
    assert sum(p.change for p in parts) == pytest.approx(float(moved), abs=0.4)  # apart from the drift that is kept
    assert "$/bbl below its average of a quarter: +" in location.sentence("SPREAD", "3m")


def test_backtest_of_a_spread_has_outcomes_and_quantiles_in_price_units(backtest: Backtest, spread: Panel) -> None:
    outcomes, quantiles = backtest.price_changes("har-garch")
    own = spread.values.plain()[:, 0]
    start = len(own) - len(backtest.origins)
    torch.testing.assert_close(outcomes[:-5, 0, 0], (own[start + 5 :] - own[start:-5]), atol=1e-9, rtol=0)
    assert (quantiles.diff(dim=-1) > 0).all()
    assert backtest.scores.rows[0].coverage90 == pytest.approx(0.9, abs=0.05)
    assert all(row.skill > 0 for row in backtest.scores.rows if row.model == "har-garch")


def test_summary_of_a_spread_has_the_mean_skill_of_symbols(backtest: Backtest) -> None:
    summary = forecast.summarize(backtest)
    skills = {str(row.horizon): row.skill for row in backtest.scores.rows if row.model == "har-garch"}
    assert summary.mean_skill == pytest.approx(skills)  # of one symbol
    assert forecast.BacktestSummary.from_json(summary.to_json()).mean_skill == summary.mean_skill
    assert "The mean of the symbols' skills is +" in report.describe_scores(summary)


def test_backtest_of_a_spread_is_the_forecast_of_its_fits(backtest: Backtest, spread: Panel) -> None:
    fitted = forecast.fit(spread, through="2016-12-31")  # with a price scale of its own
    day = backtest.origins[20]
    prices = fitted.predict(spread.between(None, day)).prices[:, 0]
    row = int((backtest.origins < day).sum())
    _, changes = backtest.price_changes("har-garch")
    torch.testing.assert_close(changes[row, :, 0] + spread.between(None, day).values.plain()[-1], prices)


def test_simulation_of_a_spread_has_the_quantiles_of_the_forecast(forecaster: Forecaster, spread: Panel) -> None:
    simulation = forecaster.simulate(spread, horizon=21)
    assert (simulation.prices.plain() < 0).any()
    expected = forecaster.predict(spread).prices[1]
    torch.testing.assert_close(simulation.quantiles(forecaster.levels)[20], expected, atol=0.05, rtol=0)
    assert simulation.log_returns.plain().isnan().all()


def test_many_capped_changes_are_a_finding() -> None:
    basis = diesel_basis("2014-01-01", "2022-12-31")
    fitted = forecast.fit(basis, through="2021-12-31")
    kinds = {f.kind: f.value for f in fitted.predict(basis.between(None, "2022-11-30")).findings}
    assert kinds["capped changes"].endswith("of the last 63 are larger than 0.25 S, or a jump of that size")
    assert "capped changes" not in {f.kind for f in fitted.predict(basis.between(None, "2021-12-31")).findings}


def test_a_basis_that_is_zero_for_months_is_forecast() -> None:
    basis = diesel_basis("2008-01-01", "2019-12-31")
    coarse = 4 * (basis.values.plain() / 4).round()  # as quoted in steps of 4 dollars
    panel = replace(basis, values=coarse, findings=())
    zeros = (coarse[:, 0] == 0).int().tolist()
    longest = max(len(run) for run in "".join(map(str, zeros)).split("0"))
    assert longest > 60
    prices = forecast.fit(panel, signed=["BASIS"]).predict(panel).prices
    assert prices.isfinite().all()
    assert (prices.diff(dim=-1) >= 0).all()


def test_a_spread_that_changes_sign_once_is_forecast() -> None:
    prices = data.read("monthly", ["CRUDE_OIL_BRENT", "COTTON_A_INDEX"])  # negative until the oil crisis of 1973
    panel = data.spread(prices, "CRUDE_OIL_BRENT-COTTON_A_INDEX", factors={"COTTON_A_INDEX": 5}, name="S")
    values = panel.values.plain()[:, 0]
    assert int((values.sign().diff() != 0).sum()) == 1
    rows = [row for row in forecast.backtest(panel).scores.rows if row.model == "har-garch"]
    assert all(row.skill > 2 and row.coverage90 == pytest.approx(0.9, abs=0.05) for row in rows)


def test_portfolios_and_scenarios_refuse_spreads_in_words(spread: Panel) -> None:
    with pytest.raises(ValueError, match=r"a portfolio needs returns, which prices below zero do not have; got SPREAD"):
        portfolio.backtest(spread, costs=[0.0])
    with pytest.raises(ValueError, match=r"a scenario of returns needs returns, .*; got SPREAD: use the legs"):
        scenarios.fit_scenarios(spread)


def test_outlook_of_a_spread_has_changes_in_price_units_and_its_own_name(forecaster: Forecaster, spread: Panel) -> None:
    latest, previous = forecaster.predict(spread), forecast.previous_forecast(forecaster, spread)
    assert previous is not None
    (row,) = forecast.outlook(latest, previous).rows
    assert row.signed
    changes = [one.median_change for one in row.ranges]
    assert changes == pytest.approx((latest.prices[:, 0, 9] - previous.prices[:, 0, 9]).tolist())
    section = plain_text(outlook_section(forecast.outlook(latest, previous)))
    assert f", {changes[0]:+.{row.decimals}f}".replace("-", "\u2212") in section
    assert "of a price that may be negative, the median's is in its unit" in section
    futures = replace(latest, history=spread.with_contracts({"SPREAD": "CL"}))
    assert forecast.outlook(futures).rows[0].name == "SPREAD"  # not that of its contract


def test_losses_of_a_spread_are_in_price_units(backtest: Backtest, forecaster: Forecaster, spread: Panel) -> None:
    result = forecaster.predict(spread)
    losses = risk.price_losses(result.prices[:, 0] - result.last[0], result.levels)
    torch.testing.assert_close(losses.long_value_at_risk, result.last[0] - result.prices[:, 0, 0])
    week = risk.evaluate_tails(backtest)[0]
    assert 0.5 * week.expected <= week.exceedances <= 2 * week.expected


def test_scoreboard_scores_a_spread(spread: Panel) -> None:
    task = scoreboard.make_task(spread, first_year=2018)

    def last_price(panel: Panel, horizons: tuple[int, ...], levels: tuple[float, ...]) -> torch.Tensor:
        steps = torch.tensor(levels, dtype=torch.double) - 0.5
        return panel.values.plain()[-1][:, None] + 4 * steps.expand(len(horizons), 1, -1)

    table = task.outcomes()[["origin", "symbol", "horizon", "price"]]
    steps = {f"{level:g}": table["price"] + 4 * (level - 0.5) for level in task.levels}
    table = table.drop(columns="price").assign(**steps)
    assert (table["0.05"] < 0).any()
    board = scoreboard.run(
        task,
        functions={"four dollars": last_price},
        tables={"in a file": table},
        without=["autoarima", "autoets", "theta"],
    )
    assert board.score("four dollars", 5).n == board.score("har-garch", 5).n > 40
    losses = [board.score(name, 21).pinball for name in ("four dollars", "in a file")]
    assert losses[0] == pytest.approx(losses[1])
