"""Spreads as symbols: formulas, units, missing legs, contracts and curves."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torch_opkit import MetadataTensor
from torchcommodity import data
from torchcommodity.data import DataError, Panel, parse_spread, spread
from torchcommodity.data._core.price_units import unit_factor
from torchcommodity.data._core.spread_formulas import USUAL_SPREADS, format_formula

UNITS = {
    "$/bbl": 42.0, "$/gal": 1.0, "¢/gal": 100.0, "US cents/gal": 100.0, "USD per barrel": 42.0, "$/l": 1 / 3.785411784,
}  # fmt: skip


@pytest.fixture(scope="module")
def oil() -> Panel:
    return data.embedded(["BRENT", "WTI", "GASOLINE_NYH", "HEATING_OIL_NYH"])


def column(panel: Panel) -> pd.Series:
    return panel.to_pandas().iloc[:, 0]


def test_spread_of_two_symbols_is_their_difference(oil: Panel) -> None:
    panel = spread(oil, {"BRENT": 1, "WTI": -1}, name="BASIS", unit="$/bbl")
    frame = oil.to_pandas()
    expected = (frame["BRENT"] - frame["WTI"]).dropna()
    assert panel.symbols == ("BASIS",)
    assert panel.units == ("$/bbl",)
    pd.testing.assert_series_equal(column(panel), expected, check_names=False, rtol=0, atol=1e-10)


def test_spread_of_a_text_a_mapping_and_a_frame_agree(oil: Panel) -> None:
    expected = column(spread(oil, {"BRENT": 1, "WTI": -1}))
    assert column(spread(oil, "BRENT - WTI")).equals(expected)
    assert column(spread(oil.to_pandas(), "BRENT-WTI")).equals(expected)


def test_spread_321_crack_is_in_dollars_per_barrel(oil: Panel) -> None:
    frame = oil.to_pandas()
    expected = (2 * 42 * frame["GASOLINE_NYH"] + 42 * frame["HEATING_OIL_NYH"] - 3 * frame["WTI"]).dropna() / 3
    panel = spread(oil, "crack-3-2-1")
    assert panel.units == ("$/bbl",)
    np.testing.assert_allclose(column(panel), expected, atol=1e-9)
    own = column(spread(oil, "CRACK=2*GASOLINE_NYH+1*HEATING_OIL_NYH-3*WTI"))
    np.testing.assert_allclose(own / 3, expected, atol=1e-9)


def test_spread_usual_names_find_their_legs_among_references() -> None:
    panel = spread(data.read("embedded"), "crack-heating-oil")
    assert "HEATING_OIL_NYH EER" in panel.provenance[0].series


def test_spread_soybean_crush_is_the_board_crush() -> None:
    # CME: meal ($/short ton) x .022 + oil (¢/lb) x .11 - soybeans ($/bu)
    frame = pd.DataFrame(
        {"SOYBEAN": [1043.25, 1050.0], "SOYMEAL": [310.5, 312.0], "SOYOIL": [43.1, 44.0]},
        index=pd.to_datetime(["2024-08-01", "2024-08-02"]),
    )
    prices = data.to_panel(frame, units=["US cents/bu", "$/short ton", "US cents/lb"])
    panel = spread(prices, "crush-soybean")
    expected = 0.022 * frame["SOYMEAL"] + 0.11 * frame["SOYOIL"] - frame["SOYBEAN"] / 100
    assert panel.units == ("$/bu",)
    np.testing.assert_allclose(column(panel), expected, atol=1e-12)
    np.testing.assert_allclose(column(spread(prices, "crush-soybean", unit="¢/bu")), 100 * expected, atol=1e-9)


def test_spread_row_with_a_missing_leg_is_missing(oil: Panel) -> None:
    values = oil.values.plain().clone()
    values[-10, 1] = torch.nan
    panel = spread(replace(oil, values=MetadataTensor(values)), "BRENT-WTI")
    assert oil.dates[-10] not in panel.dates
    assert oil.dates[-9] in panel.dates


@given(st.lists(st.floats(0.1, 9).map(lambda x: round(x, 3)), min_size=2, max_size=2), st.floats(0.5, 4))
def test_spread_is_linear_in_its_weights(weights: list[float], factor: float) -> None:
    oil = data.embedded(["BRENT", "WTI"]).between("2020-04-01", "2020-05-29")
    legs = {"BRENT": weights[0], "WTI": -weights[1]}
    one = spread(oil, legs, name="X").values.plain()
    scaled = spread(oil, {symbol: factor * weight for symbol, weight in legs.items()}, name="X").values.plain()
    torch.testing.assert_close(scaled, factor * one, rtol=1e-10, atol=1e-9)


@given(st.sampled_from(sorted(UNITS)), st.sampled_from(sorted(UNITS)))
def test_spread_converts_units_and_back(unit: str, target: str) -> None:
    assert unit_factor(unit, target) == pytest.approx(UNITS[target] / UNITS[unit], rel=1e-12)
    assert unit_factor(unit, target) * unit_factor(target, unit) == pytest.approx(1, rel=1e-12)


@given(
    st.dictionaries(
        st.sampled_from(["WTI", "BRENT", "CL=F", "EUR-USD", "Crude oil, Brent", "S&P 500", "RB2405"]),
        st.integers(1, 99).map(lambda n: n / 8) | st.integers(-99, -1).map(lambda n: n / 8),
        min_size=2,
    )
)
def test_spread_formula_reads_what_it_writes(legs: dict[str, float]) -> None:
    text = format_formula(legs)
    assert parse_spread(f"NAME={text}").legs == legs
    assert parse_spread(f"NAME={text}").name == "NAME"
    assert parse_spread(text).legs == legs


def test_spread_formula_takes_symbols_of_yahoo() -> None:
    assert parse_spread("CL=F-BZ=F").legs == {"CL=F": 1, "BZ=F": -1}
    assert parse_spread("CRACK=RB=F - CL=F").name == "CRACK"


@pytest.mark.parametrize(
    ("legs", "message"),
    [
        ("WTI", "at least two legs, or one of crack-3-2-1, crack-gasoline, crack-heating-oil, crush-soybean; got WTI"),
        (
            {"WTI": 1},
            "at least two legs, or one of crack-3-2-1, crack-gasoline, crack-heating-oil, crush-soybean; got WTI",
        ),
        ({}, "crush-soybean; got none"),
        ({"WTI": 1, "BRENT": 0}, "finite and not zero; got 0 of 'BRENT'"),
        ({"WTI": 1, "BRENT": float("nan")}, "finite and not zero"),
        ({"WTI": 1, "BRNT": -1}, "unknown symbol 'BRNT' in legs; did you mean 'BRENT'"),
        ("WTI+BRENT-WTI", "each leg once; got 'WTI' twice"),
        ("WTI BRENT", "expected NAME="),
        ("", "expected NAME="),
        ("crush-soybean", "needs a price of SM"),
        ("CL1-CL2", "needs symbols CL1 and CL2, or the futures curve of CL"),
        ("WTI=BRENT-WTI", "a name other than the symbols of the prices; got 'WTI'"),
        ("../x=BRENT-WTI", "that is not a path"),
    ],
)
def test_spread_refuses_what_is_none(oil: Panel, legs: object, message: str) -> None:
    with pytest.raises(DataError, match=message.replace("(", r"\(")):
        spread(oil, legs)  # type: ignore[arg-type]  # an empty mapping has no types


def test_spread_refuses_weights_and_legs_of_other_types(oil: Panel) -> None:
    with pytest.raises(TypeError, match="weights must be numbers by symbol"):
        spread(oil, {"WTI": "one", "BRENT": 1})  # type: ignore[dict-item]  # under test
    with pytest.raises(TypeError, match="legs must be a mapping of symbols to weights"):
        spread(oil, 5)  # type: ignore[arg-type]  # under test


@pytest.mark.parametrize(
    ("units", "message"),
    [
        (["€/bbl", "$/bbl"], "two currencies"),
        (["$/mt", "$/bbl"], "per (mass|volume) and .* per (mass|volume), and a density is not known"),
        (["$/MMBtu", "$/bbl"], "a heat content is not known"),
        (["$/bu", "$/mt"], "the weight of a bushel is not known"),
        (["points", "$/bbl"], "the unit 'points' is not known"),
        (["$/ton", "$/mt"], "a ton is short"),
        (["", "$/bbl"], "a unit is not stated"),
    ],
)
def test_spread_refuses_units_that_cannot_be_converted(oil: Panel, units: list[str], message: str) -> None:
    prices = replace(oil.select(["BRENT", "WTI"]), units=tuple(units))
    with pytest.raises(DataError, match=f"cannot convert .*{message}.*pass factors="):
        spread(prices, "BRENT-WTI")


def test_spread_takes_factors_where_units_do_not_tell(oil: Panel) -> None:
    prices = replace(oil.select(["BRENT", "WTI"]), units=("$/mt", "$/bbl"))
    panel = spread(prices, "BRENT-WTI", unit="$/bbl", factors={"BRENT": 1 / 7.45})
    frame = prices.to_pandas()
    np.testing.assert_allclose(column(panel), (frame["BRENT"] / 7.45 - frame["WTI"]).dropna(), atol=1e-9)
    with pytest.raises(DataError, match="unknown symbol 'BRNT' in factors"):
        spread(prices, "BRENT-WTI", factors={"BRNT": 2})


def test_spread_knows_the_bushel_of_a_contract() -> None:
    index = pd.to_datetime(["2024-08-01", "2024-08-02"])
    frame = pd.DataFrame({"CORN": [380.0, 385.0], "MAIZE": [170.0, 171.0]}, index=index)
    prices = data.to_panel(frame, units=["¢/bu", "$/mt"], contracts=["C", None])
    bushels_per_tonne = 1000 / (56 * 0.45359237)
    expected = frame["CORN"] / 100 * bushels_per_tonne - frame["MAIZE"]
    np.testing.assert_allclose(column(spread(prices, "CORN-MAIZE", unit="$/mt")), expected, atol=1e-9)


def test_spread_that_is_zero_but_for_rounding_is_zero() -> None:
    frame = pd.DataFrame(
        {"A": [0.1, 0.7], "B": [0.2, 0.1], "C": [0.3, 0.8]}, index=pd.date_range("2024-01-01", periods=2)
    )
    assert column(spread(frame, "A+B-C")).tolist() == [0.0, 0.0]


def test_spread_merges_the_provenance_of_its_legs() -> None:
    prices = data.embedded(["WTI", "HENRY_HUB"])
    record = spread(prices, "GAS=WTI-HENRY_HUB", factors={"HENRY_HUB": 5.8}).provenance[0]
    assert record.series == "spread, with factors: WTI-5.8*HENRY_HUB (WTI RWTC, HENRY_HUB RNGWHHD)"
    assert all(publisher in record.publisher for publisher in ("U.S. Energy", "Refinitiv"))
    assert record.sha256 == prices.provenance[0].sha256
    unstated = replace(prices, provenance=(prices.provenance[0], replace(prices.provenance[1], publisher="not stated")))
    panel = spread(unstated, "WTI-HENRY_HUB", factors={"HENRY_HUB": 5.8})
    assert not panel.provenance[0].is_stated


@pytest.mark.parametrize(
    ("legs", "name", "unit"),
    [
        ("BRENT-WTI", None, None),
        ({"GASOLINE_NYH": 2, "WTI": -1.5}, "CRACK", "¢/gal"),
        ("MY CRACK=crack-3-2-1", None, None),
        ("CL1-CL2", "CALENDAR (near)", None),
    ],
)
def test_restore_spreads_makes_them_of_their_legs(
    oil: Panel, legs: str | dict[str, float], name: str | None, unit: str | None
) -> None:
    futures = with_curve(oil, {"WTI": "CL"})
    panel = spread(futures, legs, name=name, unit=unit)
    restored = data.restore_spreads(futures, panel.sources())
    assert restored.symbols == (*futures.symbols, *panel.symbols)
    own = restored.select(panel.symbols).drop_empty_rows()
    assert torch.equal(own.values, panel.values)
    assert (own.units, own.contracts, own.provenance) == (panel.units, panel.contracts, panel.provenance)
    assert (own.curve is None) == (panel.curve is None)
    assert data.restore_spreads(restored, panel.sources()) is restored


def test_restore_spreads_refuses_other_units_and_missing_legs(oil: Panel) -> None:
    sources = spread(oil, "BRENT-WTI", name="S").sources()
    with pytest.raises(DataError, match="prices must have 'S', or the legs of this spread, BRENT-WTI; unknown symbol"):
        data.restore_spreads(oil.select(["WTI", "GASOLINE_NYH"]), sources)
    with pytest.raises(DataError, match="this spread, BRENT-WTI; expected legs with units, as in the fit"):
        data.restore_spreads(data.to_panel(oil.to_pandas()), sources)
    plain = spread(oil.to_pandas(), "BRENT-WTI").sources()
    with pytest.raises(DataError, match="this spread, BRENT-WTI; expected legs without units, as in the fit"):
        data.restore_spreads(oil, plain)


def test_restore_spreads_leaves_what_is_no_spread_of_the_table(oil: Panel) -> None:
    with_factors = spread(oil, "BRENT-WTI", name="S", factors={"WTI": 0.9}).sources()
    for sources in (with_factors, oil.select(["BRENT"]).sources(), [{"symbol": "S"}]):
        assert data.restore_spreads(oil.select(["WTI"]), sources).symbols == ("WTI",)


def test_spread_of_generated_prices_is_generated(oil: Panel) -> None:
    records = (replace(oil.provenance[0], publisher="synthetic"), *oil.provenance[1:])
    assert spread(replace(oil, provenance=records), "BRENT-WTI").synthetic


def test_spread_refuses_averages_beside_other_prices() -> None:
    prices = data.embedded(["COPPER", "ZINC"], frequency="monthly")
    assert spread(prices, "COPPER-ZINC").averages == (True,)
    with pytest.raises(DataError, match="all averages of their period, or none; got ZINC"):
        spread(prices.with_averages(["COPPER"]), "COPPER-ZINC")


def with_curve(panel: Panel, codes: dict[str, str]) -> Panel:
    """Front months with three contracts, each 1 % above the one before."""
    panel = panel.between("2018-01-01", "2018-12-31").with_contracts(codes)
    factors = torch.tensor([1.0, 1.01, 1.02], dtype=torch.double)
    return replace(panel, curve=MetadataTensor(panel.values.plain()[..., None] * factors))


def test_spread_of_futures_of_one_rule_has_their_contract_and_curve(oil: Panel) -> None:
    futures = with_curve(oil, {"GASOLINE_NYH": "RB", "HEATING_OIL_NYH": "HO"})
    panel = spread(futures, "HO-RB=HEATING_OIL_NYH-GASOLINE_NYH", unit="$/bbl")
    assert panel.contracts == ("HO",)
    assert panel.curve is not None
    legs = futures.select(["HEATING_OIL_NYH", "GASOLINE_NYH"])
    assert legs.curve is not None
    expected = 42 * (legs.curve.plain()[:, 0] - legs.curve.plain()[:, 1])
    rows = expected.isfinite().all(1)
    torch.testing.assert_close(panel.curve.plain()[:, 0], expected[rows])
    torch.testing.assert_close(panel.curve.plain()[:, 0, 0], panel.values.plain()[:, 0])


def test_spread_of_futures_that_roll_apart_has_no_contract_and_says_so(oil: Panel) -> None:
    futures = with_curve(oil, {"BRENT": "BRN", "WTI": "CL"})
    panel = spread(futures, "BRENT-WTI")
    assert panel.contracts == (None,)
    assert panel.curve is None
    words = [str(finding) for finding in panel.findings if finding.kind == "legs roll apart"]
    assert words == [
        "legs roll apart BRENT-WTI: futures of several roll rules, BRENT BRN, WTI CL (without contract and curve: gaps "
        "of its rolls count as changes of the price)"
    ]


def test_spread_of_a_spot_price_and_a_future_has_the_curve_of_the_future(oil: Panel) -> None:
    futures = with_curve(oil, {"HEATING_OIL_NYH": "HO"})
    panel = spread(futures, "GASOLINE_NYH-HEATING_OIL_NYH")
    assert panel.contracts == ("HO",)
    assert panel.curve is not None
    frame = futures.to_pandas()[["GASOLINE_NYH", "HEATING_OIL_NYH"]].dropna()
    np.testing.assert_allclose(
        panel.curve.plain()[:, 0, 2], frame["GASOLINE_NYH"] - 1.02 * frame["HEATING_OIL_NYH"], atol=1e-12
    )


def test_spread_says_that_an_incomplete_curve_is_left_out(oil: Panel) -> None:
    futures = with_curve(oil, {"GASOLINE_NYH": "RB", "HEATING_OIL_NYH": "HO"})
    assert futures.curve is not None
    curve = futures.curve.plain().clone()
    curve[:, 2] = torch.nan
    panel = spread(replace(futures, curve=MetadataTensor(curve)), "HEATING_OIL_NYH-GASOLINE_NYH")
    assert panel.contracts == ("HO",)
    assert panel.curve is None
    assert [f.value for f in panel.findings if f.kind == "curve left out"] == ["none of GASOLINE_NYH"]


def test_spread_of_spot_prices_says_that_their_curves_are_left_out(oil: Panel) -> None:
    spot = replace(with_curve(oil, {}), curve_of=(None, "CL", None, None))
    assert "curve left out" in {finding.kind for finding in spread(spot, "BRENT-WTI").findings}


def test_spread_of_a_calendar_is_taken_from_the_curve(oil: Panel) -> None:
    futures = with_curve(oil, {"WTI": "CL"})
    panel = spread(futures, "CL1-CL2")
    prices = futures.to_pandas()["WTI"].dropna()
    assert (panel.symbols, panel.contracts, panel.units) == (("CL1-CL2",), ("CL",), ("$/bbl",))
    np.testing.assert_allclose(column(panel), -0.01 * prices, atol=1e-12)
    assert panel.curve is not None
    assert panel.curve.shape[2] == 2
    np.testing.assert_allclose(column(spread(futures, "CL1-CL2", unit="¢/gal")), -prices / 42, atol=1e-12)
    spot = replace(futures, contracts=(None,) * 4, curve_of=(None, "CL", None, None))
    assert (spread(spot, "CL1-CL2").contracts, spread(spot, "CL1-CL2").units) == (("CL",), ("",))
    with pytest.raises(DataError, match="among the 3 of the curve; got 1 and 6"):
        spread(futures, "CL1-CL6")


def test_spread_of_two_symbols_that_look_like_months_is_no_calendar_spread() -> None:
    frame = pd.DataFrame({"CL1": [70.0, 71.0], "CL2": [71.0, 71.5]}, index=pd.date_range("2024-01-01", periods=2))
    assert column(spread(frame, "CL1-CL2")).tolist() == [-1.0, -0.5]


def test_spread_without_a_common_row_is_refused() -> None:
    frame = pd.DataFrame({"A": [70.0, None], "B": [None, 71.5]}, index=pd.date_range("2024-01-01", periods=2))
    with pytest.raises(DataError, match="a row with a price of every leg of 'A-B'"):
        spread(frame, "A-B")


def test_usual_spreads_have_a_source() -> None:
    for usual in USUAL_SPREADS.values():
        assert usual.title
        assert usual.source


def test_curve_of_a_spread_near_zero_may_be_twice_its_price(oil: Panel) -> None:
    panel = spread(oil.between("2018-01-01", "2018-12-31"), "HEATING_OIL_NYH-GASOLINE_NYH").with_contracts(
        {"HEATING_OIL_NYH-GASOLINE_NYH": "HO"}
    )
    closes = panel.values.plain()[..., None].repeat(1, 1, 2)
    prices = panel.values.plain()[:, 0]
    closes[prices.where(prices > 0, torch.inf).argmin(), 0] *= 3  # a vendor that rolls on another day
    assert panel.with_curve(closes).curve is not None


def test_join_aligns_dates_and_keeps_what_panels_have(oil: Panel) -> None:
    futures = with_curve(oil, {"WTI": "CL"})
    gas = data.embedded(["HENRY_HUB"]).with_references(data.embedded(["PROPANE_MB", "WTI"]))
    joined = futures.join(gas)
    assert joined.symbols == (*futures.symbols, "HENRY_HUB")
    assert joined.contracts == (*futures.contracts, None)
    assert joined.calendars == (*futures.calendars, None)
    assert joined.references is not None
    assert joined.references.symbols == ("PROPANE_MB",)
    own = replace(joined.select(futures.symbols), references=None)
    assert own.between(futures.dates[0], futures.dates[-1]).drop_empty_rows().equals(futures.drop_empty_rows())
    assert np.isnan(joined.to_pandas().loc["2010-01-04", "WTI"])


def test_join_refuses_a_symbol_twice_and_two_frequencies(oil: Panel) -> None:
    with pytest.raises(DataError, match="join: expected distinct symbols; got WTI"):
        oil.join(data.embedded(["WTI"]))
    with pytest.raises(DataError, match="join: expected panels of one frequency; got daily and monthly"):
        oil.join(data.embedded(["GOLD"], frequency="monthly"))


def test_rolls_of_a_spread_are_on_rows_with_negative_prices_too() -> None:
    panel = spread(
        data.embedded(["HEATING_OIL_NYH", "GASOLINE_NYH"]).between("2018-01-01", "2018-12-31"),
        "GASOLINE_NYH-HEATING_OIL_NYH",
    )
    panel = panel.with_contracts({panel.symbols[0]: "HO"})
    assert (panel.values.plain() < 0).float().mean() > 0.5
    assert torch.equal(panel.rolls(ahead=0), panel.roll_months(ahead=0))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"factors": {"WTI": 0}}, DataError, "factors that are finite and not zero; got 0 of 'WTI'"),
        ({"factors": {"WTI": "a"}}, TypeError, "factors must be numbers by symbol"),
        ({"factors": 2}, TypeError, "factors must be numbers by symbol"),
        ({"unit": 5}, TypeError, "unit must be a text; got 5"),
        ({"name": 5}, TypeError, "name must be a text; got 5"),
    ],
)
def test_spread_refuses_arguments_of_other_kinds(
    oil: Panel, arguments: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        spread(oil, "BRENT-WTI", **arguments)  # type: ignore[arg-type]  # under test


def test_spread_suggests_the_nearest_usual_spread(oil: Panel) -> None:
    with pytest.raises(DataError, match="did you mean 'crack-3-2-1'"):
        spread(oil, "crack-321")


def test_spread_begins_its_default_name_with_a_leg_that_is_bought(oil: Panel) -> None:
    assert spread(oil, {"WTI": -1, "BRENT": 1}).symbols == ("BRENT-WTI",)


def test_join_refuses_what_is_no_panel(oil: Panel) -> None:
    with pytest.raises(TypeError, match=r"join: expected panels, as data\.to_panel makes them; got DataFrame"):
        oil.join(oil.to_pandas())  # type: ignore[arg-type]  # under test
