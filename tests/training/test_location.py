"""The fit of related prices and seasons, against the same formulas written with pandas, and who it uses."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from torchcommodity import data, forecast
from torchcommodity.data import Panel
from torchcommodity.models import Har, HarConfig, ModelInputs
from torchcommodity.training import calibrate, model_inputs

OIL = ["WTI", "BRENT", "HEATING_OIL_NYH", "GASOLINE_NYH"]


def calibrated(panel: Panel) -> tuple[Har, ModelInputs]:
    references = () if panel.references is None else panel.references.symbols
    config = replace(HarConfig.for_frequency(panel.frequency), references=references, averages=any(panel.averages))
    inputs = model_inputs(panel, config.horizons[-1], references=references)
    har = Har(len(panel.symbols), config)
    calibrate(har, inputs, symmetry=1.0)
    return har, inputs


def shifts(har: Har, inputs: ModelInputs) -> np.ndarray:  # (T, H, N)
    with torch.no_grad():
        return np.asarray(har(*inputs.batch()).shift[0])


def ewm(x: pd.Series, halflife: float, min_periods: int = 0) -> pd.Series:
    return x.ewm(halflife=halflife, adjust=True, ignore_na=True, min_periods=min_periods).mean()


def waves(dates: pd.DatetimeIndex) -> np.ndarray:  # (T, 4)
    """Day of the year since the start of a year of 365.25 days, counted from 1970-01-01."""
    angle = 2 * np.pi * ((dates - pd.Timestamp("1970-01-01")).days.to_numpy() % 365.25) / 365.25
    return np.stack([np.sin(angle), np.cos(angle), np.sin(2 * angle), np.cos(2 * angle)], 1)


def expected_shifts(frame: pd.DataFrame, symbol: str, har: Har, before: np.ndarray) -> np.ndarray:  # (T, H)
    """Parts 1 to 3 for one symbol of `frame`, on its own rows; `before` (T, H) is the part of rolls and averages."""
    monthly = har.config.frequency == "monthly"
    half_life, min_values, min_rows, comovement = (24, 12, 120, 0.3) if monthly else (504, 126, 500, 0.4)
    log = np.log(frame)
    own = log[symbol].dropna()
    carried = {}
    for name in frame.columns.drop(symbol):
        # at most five of the symbol's own rows old, from a price of any row
        last = log[name].ffill().reindex(own.index)
        count = log[symbol].notna().cumsum()
        age = count.reindex(own.index) - count.where(log[name].notna()).ffill().reindex(own.index)
        carried[name] = last.where(age <= 5)
    returns = own.diff().clip(-har.config.cap, har.config.cap)
    variance = ewm(returns**2, 12 if monthly else 252).to_numpy()
    season = waves(pd.DatetimeIndex(own.index))
    deviation = {}
    for name, other in carried.items():
        ratio = own - other
        deviation[name] = (ratio - ewm(ratio, half_life, min_values)).where(ratio.notna()).to_numpy()
    result = np.full(before.shape, np.nan)
    for i, h in enumerate(har.config.horizons):
        sigma = np.sqrt(h * variance)
        sigma[: har.config.warmup] = np.nan
        outcome = own.shift(-h).to_numpy() - own.to_numpy() - before[:, i]
        y = outcome / sigma
        weights, evidence = {}, {}
        for name, other in carried.items():
            c = (other.shift(-h) - other).to_numpy() / sigma
            both = np.isfinite(y) & np.isfinite(c)
            alike = (y * c)[both].sum() / np.sqrt((y[both] ** 2).sum() * (c[both] ** 2).sum()) if both.any() else 0.0
            z = deviation[name] / sigma
            known = np.isfinite(y) & np.isfinite(z)
            if alike < comovement or min(known.sum(), both.sum()) < min_rows:
                continue
            b = (z * y)[known].sum() / (z[known] ** 2).sum()
            if b < 0:
                f = b**2 * (z[known] ** 2).sum() / (h * np.var(y[known] - b * z[known]))
                weights[name], evidence[name] = b, f
        total = sum(evidence.values())
        m1 = np.zeros(len(own))
        for name, f in evidence.items():
            m1 += f / total * f / (f + 12) * weights[name] * np.nan_to_num(deviation[name])
        left = (outcome - m1) / sigma
        known = np.isfinite(left)
        g = season / sigma[:, None]
        beta = np.linalg.lstsq(g[known], left[known], rcond=None)[0]
        gram = g[known].T @ g[known]
        f = beta @ gram @ beta / 4 / (h * np.var(left[known] - g[known] @ beta))
        m2 = season @ beta * f / (f + 6)
        result[:, i] = before[:, i] + np.clip(m1 + m2, -0.5 * sigma, 0.5 * sigma)
    return result


def assert_recipe(panel: Panel, frame: pd.DataFrame) -> None:
    har, inputs = calibrated(panel)
    actual = shifts(har, inputs)
    assert har.location is not None
    location, har.location = har.location, None
    without = shifts(har, inputs)
    moved = 0
    for n, symbol in enumerate(panel.symbols):
        own = np.isfinite(np.asarray(panel.values.plain())[:, n])
        expected = expected_shifts(frame, symbol, har, without[own, :, n])
        known = np.isfinite(expected)
        assert known.any(0).all()
        np.testing.assert_allclose(actual[own, :, n][known], expected[known], rtol=0, atol=1e-9)
        np.testing.assert_array_equal(actual[own, :, n][~known], without[own, :, n][~known])
        moved += int((actual[own, :, n] != without[own, :, n]).sum())
    assert location.pairs is not None
    assert moved > 1000


def test_shifts_of_daily_prices_are_those_of_the_formulas() -> None:
    panel = data.embedded(OIL).between("2000-01-01", "2012-12-31")
    assert_recipe(panel, panel.to_pandas())


def test_shifts_with_references_are_those_of_the_formulas() -> None:
    panel = data.embedded(OIL).between("2000-01-01", "2012-12-31").with_references(["BRENT", "GASOLINE_NYH"])
    assert panel.references is not None
    assert_recipe(panel, panel.to_pandas().join(panel.references.to_pandas()))


def test_shifts_of_monthly_averages_are_those_of_the_formulas() -> None:
    panel = data.embedded(["ALUMINUM", "COPPER", "ZINC", "LEAD"], frequency="monthly").between("1980-01-01")
    assert_recipe(panel, panel.to_pandas())


def test_a_fit_uses_no_outcome_after_its_last_row() -> None:
    panel = data.embedded(OIL).between("2004-01-01", "2012-12-31").with_references(["BRENT"])
    changed = panel.values.plain().clone()
    rows = panel.dates > np.datetime64("2011-12-31")
    changed[torch.from_numpy(rows)] *= 3
    later = replace(panel, values=type(panel.values)(changed))
    fits = [forecast.fit(p, through="2011-12-31").model.har.location for p in (panel, later)]
    first, second = (location.state_dict() for location in fits if location is not None)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_coefficients_do_not_depend_on_rows_on_which_only_others_or_none_trade() -> None:
    oil = data.embedded(["WTI", "BRENT"]).between("2004-01-01", "2012-12-31")
    oil = oil._rows(torch.isfinite(oil.values.plain()).all(1).numpy())
    frame = oil.to_pandas()
    weekends = pd.date_range("2004-01-03", "2012-12-29", freq="7D")
    union = data.to_panel(frame.reindex(frame.index.union(weekends)))
    other = data.to_panel(frame.reindex(frame.index.union(weekends)).assign(OTHER=50.0)).select(oil.symbols)
    expected = calibrated(oil)[0].location
    assert expected is not None
    assert expected.pairs is not None
    for panel in (union, other):
        actual = calibrated(panel)[0].location
        assert actual is not None
        assert all(torch.equal(x, actual.state_dict()[name]) for name, x in expected.state_dict().items())


def test_unrelated_symbols_and_a_single_one_have_no_pairs() -> None:
    for symbols in (["WTI"], ["HENRY_HUB", "WTI"]):
        location = calibrated(data.embedded(symbols).between("2009-01-01", "2018-12-31"))[0].location
        assert location is not None
        assert location.pairs is None
        assert (location.season != 0).all()


def test_pairs_are_sorted_and_the_coefficients_are_reversions() -> None:
    location = calibrated(data.embedded(OIL).between("2000-01-01", "2012-12-31"))[0].location
    assert location is not None
    assert location.pairs is not None
    pairs = location.pairs.tolist()
    assert pairs == sorted(pairs)
    assert all(symbol != other for symbol, other in pairs)
    assert (location.coefficients <= 0).all()
    assert (location.coefficients < 0).any(0).all()
    assert (location.rows >= 500).all()


def test_short_histories_have_neither_pairs_nor_season() -> None:
    location = calibrated(data.embedded(OIL).between("2010-01-01", "2012-06-30"))[0].location
    assert location is not None
    assert location.pairs is None
    assert (location.season == 0).all()


@pytest.mark.parametrize("references", [["WTI"], ["BRENT", "HEATING_OIL_NYH"]])
def test_references_have_the_coefficients_of_symbols(references: list[str]) -> None:
    panel = data.embedded(OIL).between("2000-01-01", "2012-12-31")
    both = torch.isfinite(panel.values.plain()).all(1).numpy()  # the same rows in both panels
    panel = panel._rows(both)
    others = panel.with_references(references)
    assert others.references is not None
    names = [panel.symbols, others.symbols + others.references.symbols]
    found = []
    for p, columns in zip((panel, others), names):
        location = calibrated(p)[0].location
        assert location is not None
        assert location.pairs is not None
        pairs = [(columns[n], columns[j]) for n, j in location.pairs.tolist()]
        found.append(dict(zip(pairs, location.coefficients.T.tolist())))
    kept = {pair: c for pair, c in found[0].items() if pair[0] in others.symbols}
    assert found[1].keys() == kept.keys()
    for pair, coefficients in kept.items():
        np.testing.assert_allclose(found[1][pair], coefficients, rtol=1e-9)


def test_a_symbol_has_at_most_as_many_pairs_as_the_strongest_of_its_relations(monkeypatch: pytest.MonkeyPatch) -> None:
    panel = data.embedded(OIL).between("2000-01-01", "2012-12-31")
    every = calibrated(panel)[0].location
    monkeypatch.setattr("torchcommodity.training._location.MAX_PAIRS", 1)
    strongest = calibrated(panel)[0].location
    assert every is not None
    assert strongest is not None
    assert every.pairs is not None
    assert strongest.pairs is not None
    assert torch.bincount(strongest.pairs[:, 0]).max() == 1
    assert set(map(tuple, strongest.pairs.tolist())) < set(map(tuple, every.pairs.tolist()))


def test_the_same_price_in_another_unit_is_no_relation() -> None:
    panel = data.embedded(["WTI"]).between("2005-01-01", "2015-12-31").drop_empty_rows()
    both = panel.to_pandas().assign(PER_CUBIC_METER=lambda frame: frame["WTI"] * 6.2898)
    har, _ = calibrated(data.to_panel(both))
    assert har.location is not None
    assert har.location.pairs is None
