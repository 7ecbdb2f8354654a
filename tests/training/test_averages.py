"""Memory in the returns of averages: the theory of random walks, and its use by the model."""

import math

import pytest
import torch

from torchcommodity.data import Panel, embedded
from torchcommodity.models import Har, HarConfig, build_model, default_config
from torchcommodity.training import calibrate, model_inputs, moving_average

ALL = torch.tensor([True])


def averages_of_a_random_walk(months: int, days: int = 250) -> torch.Tensor:
    """Log-returns (T, 1) of the averages of a random walk."""
    generator = torch.Generator().manual_seed(0)
    walk = torch.randn(months * days, dtype=torch.double, generator=generator).cumsum(0)
    return walk.reshape(months, days).mean(1).diff().unsqueeze(1)


def test_moving_average_of_averaged_random_walk_is_that_of_working() -> None:
    theta = moving_average(averages_of_a_random_walk(20_000), ALL).item()
    assert theta == pytest.approx(2 - 3**0.5, abs=0.03)


def test_moving_average_of_few_returns_is_the_theory() -> None:
    random = torch.randn(6, 1, dtype=torch.double, generator=torch.Generator().manual_seed(1))
    assert moving_average(random, ALL).item() == pytest.approx(2 - 3**0.5, abs=0.03)


def test_moving_average_of_prices_that_are_no_averages_is_zero() -> None:
    returns = averages_of_a_random_walk(300).expand(-1, 2)
    assert (moving_average(returns, torch.tensor([False, True])) > 0).tolist() == [False, True]


def test_moving_average_skips_missing_and_constant_returns() -> None:
    returns = averages_of_a_random_walk(300)
    gaps = torch.full((600, 1), torch.nan, dtype=torch.double)
    gaps[: 2 * len(returns) : 2] = returns
    assert torch.equal(moving_average(gaps, ALL), moving_average(returns, ALL))
    assert moving_average(torch.zeros(50, 1), ALL).isfinite().all()


def test_shift_of_averages_is_the_share_of_the_last_innovation_at_every_horizon() -> None:
    har = Har(1, HarConfig(averages=True, horizons=(1, 12), warmup=2))
    har.theta.fill_(0.25)
    shift = har(torch.tensor([100.0, 110.0, 110.0, torch.nan]).double().reshape(1, 4, 1)).shift[0, :, :, 0]
    first = math.log(1.1)
    assert shift[:, 0].tolist() == pytest.approx([0, 0.25 * first, -(0.25**2) * first, -(0.25**2) * first])
    assert torch.equal(shift[:, 0], shift[:, 1])


@pytest.fixture(scope="module")
def monthly() -> Panel:
    return embedded(["GOLD", "COPPER"], frequency="monthly").between("1990-01-01", "2009-12-31")


def test_calibrate_fits_averages_on_the_rows_given(monthly: Panel) -> None:
    from dataclasses import replace

    config = default_config("har-garch", "monthly")
    model = build_model(replace(config, har=replace(config.har, averages=True)), 2)
    inputs = model_inputs(monthly.with_averages(["COPPER"]), 12)
    calibrate(model.har, inputs.before(200), 0.5)
    gold, copper = model.har.theta.tolist()
    assert gold == 0
    assert 0.1 < copper < 0.5
