"""`Forecaster.simulate`: margins, dependence, rolls, causality, refusals."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from torchcommodity import data, forecast, scenarios
from torchcommodity.data import Panel, SyntheticTensor
from torchcommodity.forecast import Forecaster, Simulation


@pytest.fixture(scope="module")
def oil() -> Panel:
    panel = data.embedded(["WTI", "BRENT", "HENRY_HUB"]).between("2005-01-01", "2016-12-30")
    return panel.with_contracts({"WTI": "CL"})


@pytest.fixture(scope="module")
def forecaster(oil: Panel) -> Forecaster:
    return forecast.fit(oil.between(None, "2015-12-31"))


@pytest.fixture(scope="module")
def simulation(forecaster: Forecaster, oil: Panel) -> Simulation:
    return forecaster.simulate(oil)


def test_simulate_margins_are_the_published_quantiles(simulation: Simulation) -> None:
    published = simulation.forecast
    simulated = simulation.quantiles(published.levels)
    for i, horizon in enumerate(published.horizons):
        torch.testing.assert_close(simulated[horizon - 1], published.prices[i], rtol=2e-3, atol=0)


def test_simulate_shapes_dates_and_repr(simulation: Simulation) -> None:
    assert simulation.prices.shape == (1000, 126, 3)
    assert isinstance(simulation.prices, SyntheticTensor)
    assert simulation.dates.shape == (126, 3)
    np.testing.assert_array_equal(simulation.dates[[4, 20, 62, 125]], simulation.forecast.target_dates)
    assert repr(simulation).startswith("Simulation(1,000 paths of 126 rows; WTI, BRENT, HENRY_HUB; from 2016-12-30; ")


def test_simulate_is_deterministic_per_seed(forecaster: Forecaster, oil: Panel, simulation: Simulation) -> None:
    again = forecaster.simulate(oil, horizon=21)
    assert torch.equal(again.prices.plain(), forecaster.simulate(oil, horizon=21).prices.plain())
    assert not torch.equal(again.prices.plain(), forecaster.simulate(oil, horizon=21, seed=1).prices.plain())
    # a shorter simulation has the first rows, and fewer paths are the first ones
    torch.testing.assert_close(
        forecaster.simulate(oil, 7, horizon="2w").prices.plain(), simulation.prices.plain()[:7, :10]
    )


def test_simulate_does_not_depend_on_later_prices(forecaster: Forecaster, oil: Panel) -> None:
    changed = oil.values.plain().clone()
    changed[-20:] *= 1.5
    perturbed = replace(oil, values=changed)
    day = oil.dates[-21]
    paths = [forecaster.simulate(panel.between(None, day), 50).prices.plain() for panel in (oil, perturbed)]
    assert torch.equal(*paths)
    assert not torch.equal(paths[0], forecaster.simulate(perturbed, 50).prices.plain())


def test_simulate_roll_days_have_the_expected_gaps(forecaster: Forecaster, oil: Panel, simulation: Simulation) -> None:
    rolls = oil.roll_months(126)[-126:] > 0
    gaps = simulation.roll_gaps
    assert torch.equal(gaps[:, 0] != 0, rolls[:, 0])
    assert gaps[:, 1:].eq(0).all()  # spot
    # the gap is in the middle of that day's returns
    day = int(rolls[:, 0].nonzero()[0])
    returns = simulation.log_returns.plain()[:, :, 0]
    without_gap = returns[:, day] - gaps[day, 0]
    neighbors = torch.cat([returns[:, day - 1], returns[:, day + 1]])
    assert abs(without_gap.median() - neighbors.median()) < 0.1 * neighbors.std()


def test_simulate_keeps_the_correlation_of_past_days(simulation: Simulation, oil: Panel) -> None:
    past, _ = scenarios.complete_returns(oil)
    simulated = simulation.log_returns.plain() - simulation.roll_gaps
    expected = torch.corrcoef(past.T)
    for day in (0, 60, 125):
        assert (torch.corrcoef(simulated[:, day].T) - expected).abs().max() < 0.15


def test_simulate_volatility_clusters(simulation: Simulation) -> None:
    size = (simulation.log_returns.plain() - simulation.roll_gaps)[:, :, 1].abs()
    size = size - size.mean(0)
    lagged = (size[:, :-1] * size[:, 1:]).mean() / size.square().mean()
    assert 0.02 < lagged < 0.4


def test_simulate_one_monthly_symbol() -> None:
    gold = data.embedded(["GOLD"], frequency="monthly")
    simulation = forecast.fit(gold).simulate(gold, 20, horizon=4)
    assert simulation.prices.shape == (20, 4, 1)
    assert str(simulation.dates[0, 0]) == "2026-06-30"
    assert simulation.prices.gt(0).all()


def test_simulation_to_pandas_is_long_and_synthetic(forecaster: Forecaster, oil: Panel) -> None:
    simulation = forecaster.simulate(oil, 2, horizon=3)
    table = simulation.to_pandas()
    assert list(table.columns) == ["path", "row", "date", "symbol", "price", "source"]
    assert len(table) == 2 * 3 * 3
    row = table[(table.path == 2) & (table.row == 3) & (table.symbol == "BRENT")].squeeze()
    assert row.price == simulation.prices.plain()[1, 2, 1].item()
    assert row.source == "synthetic"
    assert np.datetime64(row.date, "D") == simulation.dates[2, 1]
    with pytest.raises(ValueError, match="synthetic"):
        forecast.fit(table[table.path == 1].drop(columns=["path", "row"]))


def test_simulation_plot_and_quantiles_reject_unknown_arguments(simulation: Simulation) -> None:
    figure = simulation.plot("BRENT")
    assert figure.layout.title.text == "BRENT, simulated"
    with pytest.raises(ValueError, match="plot: symbol must be one of WTI, BRENT, HENRY_HUB; got 'GOLD'"):
        simulation.plot("GOLD")
    with pytest.raises(ValueError, match=r"quantiles: levels must lie in \[0, 1\]; got \(5,\)"):
        simulation.quantiles([5])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"paths": 0}, "simulate: paths must be >= 1; got paths=0"),
        ({"paths": 2.5}, "simulate: paths must be an int; got paths=2.5"),
        ({"paths": True}, "simulate: paths must be an int; got paths=True"),
        ({"seed": "a"}, "simulate: seed must be an int; got seed='a'"),
        ({"seed": -1}, "simulate: seed must be in .*; got seed=-1"),
        ({"horizon": 2.5}, "simulate: horizons: expected numbers of rows, or texts .*; got 2.5"),
        ({"horizon": 0}, "simulate: horizons: must be at least 1 row; got 0"),
        ({"horizon": "7m"}, "simulate: horizon must be at most 126 rows, the longest .*; got '7m'"),
        ({"horizon": "soon"}, "simulate: horizons: expected numbers of rows, or texts .*; got 'soon'"),
    ],
)
def test_simulate_rejects_arguments(forecaster: Forecaster, oil: Panel, arguments: dict, message: str) -> None:  # type: ignore[type-arg]
    with pytest.raises((TypeError, ValueError), match=message):
        forecaster.simulate(oil, **arguments)


def test_simulate_rejects_panels(forecaster: Forecaster, oil: Panel) -> None:
    with pytest.raises(ValueError, match=r"simulate: prices must have every symbol .* without HENRY_HUB"):
        forecaster.simulate(oil.select(["WTI", "BRENT"]))
    with pytest.raises(ValueError, match="simulate: every symbol must have more than 252 positive prices; got WTI 2"):
        forecaster.simulate(oil.between("2016-01-04"))
    short = oil.values.plain().clone()
    short[:-400, 1] = torch.nan
    with pytest.raises(ValueError, match="simulate: at least 252 rows after the warm-up must have a return of every"):
        forecaster.simulate(replace(oil, values=short))
    with pytest.raises(TypeError, match="simulate"):
        forecaster.simulate(3)
