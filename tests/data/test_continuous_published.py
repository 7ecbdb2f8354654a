"""Front months built from contracts agree with published ones; needs real prices."""

import pytest
from continuous import CODED, ENERGIES, detected_rolls, rebuild

EARLY = {"SOYMEAL": 1, "SOYOIL": 2}  # rolls that are one day early in the file, see docs/results/rolls.md


@pytest.mark.parametrize("symbol", CODED)
def test_front_month_equals_the_published_one(shared_data, symbol):
    part = rebuild(shared_data, symbol)
    assert part.rows - part.equal == part.rolls - part.same_rolls == EARLY.get(symbol, 0)
    assert part.without_rule == part.rows
    assert part.nearby - part.nearby_equal <= 4
    assert part.ratio_error < 1e-13
    assert part.panama_error < 1e-12


@pytest.mark.parametrize("symbol", ENERGIES)
def test_clear_rolls_of_published_curves_are_on_the_day_of_the_rule(shared_data, symbol):
    found = detected_rolls(shared_data, symbol)
    assert found.clear.sum() > 110
    assert (found.distance[found.clear] == 0).mean() > 0.9
