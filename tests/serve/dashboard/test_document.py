"""Dashboard document: each number equals the artifact's forecast from the rows up to its date, without look-ahead."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
import torch

from torchcommodity.data import CONTRACTS, Finding, Panel, embedded
from torchcommodity.export import Artifact, Metadata, RawPriceForecaster, make_metadata
from torchcommodity.forecast import fit
from torchcommodity.serve.dashboard import Dashboard, empty_document, make_document
from torchcommodity.serve.dashboard._past_forecasts import OUTCOME_ROWS

TODAY = date(2019, 1, 2)


def make_artifact(panel: Panel, through: str) -> Artifact:
    """Artifact of a fit through a date, without writing the file."""
    forecaster = fit(panel.between(None, through))
    return Artifact(make_metadata(forecaster, "pt2"), RawPriceForecaster(forecaster))


@pytest.fixture(scope="module")
def panel() -> Panel:
    return embedded(["WTI", "BRENT"]).between("2015-01-01", "2018-12-31")


@pytest.fixture(scope="module")
def short_panel(panel: Panel) -> Panel:
    """Few rows beyond the warm-up, for few calls of the artifact."""
    return panel.between("2017-11-01")


@pytest.fixture(scope="module")
def artifact(panel: Panel) -> Artifact:
    return make_artifact(panel, "2018-06-29")


@pytest.fixture(scope="module")
def document(artifact: Artifact, panel: Panel) -> dict[str, Any]:
    return make_document(artifact, panel, "embedded", TODAY)


def past_of(document: dict[str, Any], symbol: str, rows: int) -> dict[str, Any]:
    by_symbol = {one["symbol"]: one for one in document["symbols"]}
    return {one["rows"]: one for one in by_symbol[symbol]["past"]}[rows]


def outcome_prices(panel: Panel) -> dict[str, float]:
    """Last price of the first symbol at or before each date."""
    frame = panel.to_pandas().ffill()
    return dict(zip(frame.index.strftime("%Y-%m-%d"), frame[panel.symbols[0]]))


def quantiles(artifact: Artifact, panel: Panel) -> torch.Tensor:  # (H, N, Q)
    return artifact(panel.values.plain()[None], torch.from_numpy(panel.dates.astype(np.int64))[None])[0]


@pytest.mark.slow
@pytest.mark.export
def test_past_forecasts_equal_an_exported_artifact_on_truncated_prices(wti_file: Path) -> None:
    wti, artifact = embedded(["WTI"]).between("2015-01-01", "2018-12-31"), Artifact.load(wti_file)
    document = make_document(artifact, wti, "embedded", TODAY)
    prices = outcome_prices(wti)
    for h, rows in enumerate(artifact.metadata.horizons):
        past = past_of(document, "WTI", rows)
        for k in (0, len(past["target"]) - 1):
            origin, target = (document["days"][past[name][k]] for name in ("origin", "target"))
            expected = prices[origin] * quantiles(artifact, wti.between(None, origin))[h, 0].exp()
            for level, path in past["quantiles"].items():
                index = artifact.metadata.levels.index(float(level))
                assert path[k] == pytest.approx(expected[index].item(), rel=1e-6)
            assert past["outcomes"][k] == pytest.approx(prices[target], rel=1e-6)
            assert past["target"][k] - past["origin"][k] == rows
    symbol = document["symbols"][0]
    median = prices[symbol["last_date"]] * quantiles(artifact, wti)[1, 0, 9].exp().item()
    assert symbol["forecasts"][1]["quantiles"]["0.5"] == pytest.approx(median)
    assert (symbol["forecasts"][1]["rows"], symbol["forecasts"][1]["date"]) == (21, "2019-01-30")


def test_past_forecasts_cover_the_last_outcomes_only(document: dict[str, Any], panel: Panel) -> None:
    for symbol in panel.symbols:
        for rows in (5, 21, 63, 126):
            past = past_of(document, symbol, rows)
            assert 200 < len(past["target"]) <= OUTCOME_ROWS["daily"]
            assert document["days"][past["target"][0]] >= str(panel.dates[-OUTCOME_ROWS["daily"]])


@pytest.mark.parametrize("in_sample", [True, False])
def test_coverage_equals_a_plain_count(document: dict[str, Any], in_sample: bool) -> None:
    for record in document["coverage"]:
        if record["symbol"] is None or record["in_sample"] != in_sample:
            continue
        past, days = past_of(document, record["symbol"], record["horizon"]), document["days"]
        selected = [k for k, row in enumerate(past["target"]) if (days[row] <= "2018-06-29") == in_sample]
        assert record["forecasts"] == len(selected)
        assert record["first"] == days[past["target"][selected[0]]]
        assert record["last"] == days[past["target"][selected[-1]]]
        independent, next_start = 0, -1
        for k in selected:
            if past["origin"][k] >= next_start:
                independent, next_start = independent + 1, past["target"][k]
        assert record["independent"] == independent
        for band, (low, high) in zip(record["bands"], (("0.25", "0.75"), ("0.1", "0.9"), ("0.05", "0.95"))):
            lower, upper = past["quantiles"][low], past["quantiles"][high]
            inside = [lower[k] <= past["outcomes"][k] <= upper[k] for k in selected]
            assert band["coverage"] == pytest.approx(sum(inside) / len(inside), abs=1e-6)
            assert band["expected_range"][0] <= band["nominal"] <= band["expected_range"][1]


def test_coverage_of_all_symbols_sums_forecasts_but_not_independent_ones(document: dict[str, Any]) -> None:
    records = {
        record["symbol"]: record
        for record in document["coverage"]
        if record["horizon"] == 63 and not record["in_sample"]
    }
    assert records[None]["forecasts"] == records["WTI"]["forecasts"] + records["BRENT"]["forecasts"]
    assert records[None]["independent"] <= records["WTI"]["independent"] + 1


def test_document_is_json_with_ages_and_sources(document: dict[str, Any]) -> None:
    assert json.loads(json.dumps(document, allow_nan=False)) == json.loads(json.dumps(document))
    assert (document["prices"]["age"], document["prices"]["stale"], document["state"]) == ("5 days", False, "ready")
    assert document["prices"]["columns"][0]["publisher"].startswith("U.S. Energy")
    assert document["prices"]["columns"][0]["credit"].startswith("Source: U.S. Energy")
    assert document["model"]["trained_through"] == "2018-06-29"
    assert document["correlation"]["symbols"] == ["WTI", "BRENT"]
    assert document["correlation"]["dates"][-1] == "2018-12-28"


def test_outlook_equals_the_forecasts_of_the_last_two_days(
    artifact: Artifact, document: dict[str, Any], panel: Panel
) -> None:
    rows = panel.drop_empty_rows()
    before, latest = (artifact.predict(rows.between(None, str(day))) for day in rows.dates[-2:])
    for n, symbol in enumerate(document["symbols"]):
        assert (symbol["last_date"], symbol["previous_date"]) == (str(latest.origins[n]), str(before.origins[n]))
        assert (symbol["age_days"], symbol["stale"]) == (5, False)
        for h, one in enumerate(symbol["ranges"]):
            assert one["date"] == str(latest.target_dates[h, n])
            levels = artifact.metadata.levels
            low, median, high = (latest.prices[h, n, levels.index(level)].item() for level in (0.1, 0.5, 0.9))
            old = [before.prices[h, n, levels.index(level)].item() for level in (0.1, 0.5, 0.9)]
            assert (one["low"], one["median"], one["high"]) == pytest.approx((low, median, high), rel=1e-6)
            assert one["median_change"] == pytest.approx(median / old[1] - 1, rel=1e-4)
            assert one["width_change"] == pytest.approx((high - low) / (old[2] - old[0]) - 1, rel=1e-4)


def test_ranges_say_what_moves_the_median(artifact: Artifact, document: dict[str, Any], panel: Panel) -> None:
    location = artifact.location(panel)
    for symbol in document["symbols"]:
        for one in symbol["ranges"]:
            assert one["location"] == location.sentence(symbol["symbol"], one["rows"])
    assert "season: " in document["symbols"][0]["ranges"][2]["location"]
    assert document["model"]["location"] is None  # coefficients


def test_ranges_of_an_artifact_of_an_earlier_version_do_not_say_it(artifact: Artifact, short_panel: Panel) -> None:
    earlier = replace(artifact, metadata=replace(artifact.metadata, location=None))
    document = make_document(earlier, short_panel, "embedded", TODAY, outlook_only=True)
    assert [one["location"] for one in document["symbols"][0]["ranges"]] == [None] * 4


def test_coverage_of_the_outlook_is_out_of_sample(document: dict[str, Any]) -> None:
    records = {(one["symbol"], one["horizon"], one["in_sample"]): one for one in document["coverage"]}
    for symbol in document["symbols"]:
        for one in symbol["ranges"]:
            record = records[symbol["symbol"], one["rows"], False]
            assert not one["in_sample"]
            assert one["coverage"] == {
                "share": record["bands"][1]["coverage"],
                "forecasts": record["forecasts"],
                "independent": record["independent"],
            }


def test_fan_grows_with_the_square_root_of_time_between_horizons(document: dict[str, Any]) -> None:
    symbol = document["symbols"][0]
    fan, last = symbol["fan"], symbol["last_price"]
    assert fan["dates"][0] == symbol["last_date"]
    assert len(fan["dates"]) == 127
    for level, path in fan["quantiles"].items():
        assert path[0] == last
        for forecast in symbol["forecasts"]:
            assert path[forecast["rows"]] == forecast["quantiles"][level]
            assert fan["dates"][forecast["rows"]] == forecast["date"]
        # halfway between 21 and 63 rows in the square root of time
        row = 39
        weight = (math.sqrt(row) - math.sqrt(21)) / (math.sqrt(63) - math.sqrt(21))
        expected = (1 - weight) * math.log(path[21] / last) + weight * math.log(path[63] / last)
        assert math.log(path[row] / last) == pytest.approx(expected, abs=1e-6)


def test_dates_ahead_are_trading_days_of_the_exchange(panel: Panel, short_panel: Panel) -> None:
    brent = panel.select(["BRENT"]).with_contracts({"BRENT": "BRN"})
    document = make_document(make_artifact(brent, "2018-06-29"), short_panel, "embedded", TODAY)
    days = document["symbols"][0]["fan"]["dates"]
    assert "2019-01-21" in days  # a holiday in New York, not in London
    assert "2019-04-19" not in days  # Good Friday
    assert document["symbols"][0]["exchange"] == CONTRACTS["BRN"].exchange


def test_document_reports_stale_prices(artifact: Artifact, short_panel: Panel) -> None:
    document = make_document(artifact, short_panel, "embedded", date(2026, 11, 21))
    assert document["prices"]["stale"]
    assert document["prices"]["age"] == "7 years and 10 months"


def test_document_of_one_symbol_has_no_correlation(panel: Panel, short_panel: Panel) -> None:
    wti = panel.select(["WTI"])
    document = make_document(make_artifact(wti, "2018-06-29"), short_panel, "embedded", TODAY)
    assert document["correlation"]["missing"] == "needs at least two symbols; this model has one, WTI"
    assert len(document["symbols"]) == 1


def test_document_of_a_symbol_in_warmup_says_so(artifact: Artifact, short_panel: Panel) -> None:
    values = short_panel.values.plain().clone()
    values[:-100, 1] = torch.nan
    document = make_document(artifact, replace(short_panel, values=values), "embedded", TODAY)
    wti, brent = document["symbols"]
    assert len(wti["forecasts"]) == 4
    assert brent["forecasts"] == []
    assert brent["missing"].startswith("no forecast yet: needs more than 252 positive prices; has ")


def test_document_of_a_symbol_without_any_price_has_no_date(artifact: Artifact, short_panel: Panel) -> None:
    values = short_panel.values.plain().clone()
    values[:, 1] = torch.nan
    brent = make_document(artifact, replace(short_panel, values=values), "embedded", TODAY)["symbols"][1]
    assert (brent["last_price"], brent["last_date"], brent["age"]) == (None, None, None)
    assert brent["missing"].endswith("has 0")


def test_document_of_a_symbol_that_ended_long_ago_keeps_its_decimals(artifact: Artifact, panel: Panel) -> None:
    values = panel.values.plain().clone()
    values[-300:, 1] = torch.nan
    brent = make_document(artifact, replace(panel, values=values), "embedded", TODAY)["symbols"][1]
    assert (brent["quoted_decimals"], brent["decimals"]) == (4, 1)
    assert len(brent["recent"]["prices"]) == 260
    assert (brent["stale"], brent["last_date"]) == (True, brent["previous_date"])


def test_document_of_a_symbol_without_recent_prices_starts_from_the_last(
    artifact: Artifact, short_panel: Panel
) -> None:
    values = short_panel.values.plain().clone()
    values[-3:, 0] = torch.nan
    document = make_document(artifact, replace(short_panel, values=values), "embedded", TODAY)
    wti = document["symbols"][0]
    rows_behind = int(values[-3:, 1].isfinite().sum())  # a row without any price is none
    assert (wti["last_date"], wti["rows_behind"]) == (str(short_panel.dates[-4]), rows_behind)
    assert wti["previous_date"] == wti["last_date"]  # no new price
    assert wti["recent"]["dates"][-1] == str(short_panel.dates[-4])
    assert None not in wti["recent"]["prices"]
    assert document["prices"]["last"] == str(short_panel.dates[-1])


def test_document_rejects_prices_that_do_not_fit_the_model(artifact: Artifact, panel: Panel) -> None:
    with pytest.raises(ValueError, match="got WTI without BRENT"):
        make_document(artifact, panel.select(["WTI"]), "embedded", TODAY)
    with pytest.raises(ValueError, match="at least 253 rows"):
        make_document(artifact, panel.between("2018-10-01"), "embedded", TODAY)
    with pytest.raises(ValueError, match="must be a spot price"):
        make_document(artifact, panel.with_contracts({"WTI": "CL"}), "embedded", TODAY)


def test_outcomes_of_a_front_month_include_roll_gaps(panel: Panel, short_panel: Panel) -> None:
    front_month = panel.select(["WTI"]).with_contracts({"WTI": "CL"})
    document = make_document(make_artifact(front_month, "2018-06-29"), short_panel, "embedded", TODAY)
    past, prices = past_of(document, "WTI", 21), outcome_prices(front_month)
    assert past["outcomes"][-1] == pytest.approx(prices[document["days"][past["target"][-1]]], rel=1e-6)
    wti = document["symbols"][0]
    assert (wti["contract"], wti["contract_month"], wti["next_roll"]) == ("CL", "2019-02", "2019-01-23")
    assert {"2018-12-20", "2019-01-23"} <= set(wti["rolls"])
    assert wti["rolls"][-1] <= wti["fan"]["dates"][-1]
    assert "WTI" in document["model"]["contract_names"][0]


def test_dashboard_is_cached_until_prices_change(artifact: Artifact, short_panel: Panel) -> None:
    panels = [short_panel]
    dashboard = Dashboard(artifact, lambda: panels[0], "embedded")
    assert dashboard()["state"] == "outlook"
    first = dashboard()
    assert dashboard() is first
    panels[0] = replace(short_panel, findings=(Finding("gap", "WTI", "2018-01-02", 0, "", ""),))
    assert dashboard()["findings"]
    assert dashboard() is not first


def test_outlook_comes_first_and_equals_that_of_the_complete_document(artifact: Artifact, short_panel: Panel) -> None:
    lengths: list[int] = []

    def forecast(prices: torch.Tensor, days: torch.Tensor) -> torch.Tensor:
        lengths.append(prices.shape[1])
        return artifact(prices, days)

    rows = len(short_panel)
    panels = [short_panel.between(None, short_panel.dates[-2]), short_panel]
    dashboard = Dashboard(cast("Artifact", Counted(artifact.metadata, forecast)), lambda: panels[0], "embedded")
    outlook = dashboard()
    assert lengths == [rows - 2, rows - 1]
    document = dashboard()
    assert sorted(lengths) == list(range(min(lengths), rows))  # none twice
    expected = make_document(artifact, panels[0], "embedded", date.fromisoformat(document["created"][:10]))
    assert document | {"created": ""} == expected | {"created": ""}
    assert (outlook["state"], document["state"], outlook["coverage"]) == ("outlook", "ready", [])
    for name in ("prices", "horizons", "correlation", "findings", "model"):
        assert outlook[name] == document[name]
    for early, late in zip(outlook["symbols"], document["symbols"]):
        assert all(not one["target"] for one in early["past"])
        assert without_coverage(early) == without_coverage(late)
    lengths.clear()
    del panels[0]  # a new row
    assert (dashboard()["state"], lengths) == ("ready", [rows])


class Counted(NamedTuple):
    """Artifact that calls a function."""

    metadata: Metadata
    call: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

    def __call__(self, prices: torch.Tensor, days: torch.Tensor) -> torch.Tensor:
        return self.call(prices, days)


def without_coverage(symbol: dict[str, Any]) -> dict[str, Any]:
    ranges = [one | {"coverage": None, "in_sample": None} for one in symbol["ranges"]]
    return symbol | {"ranges": ranges, "past": None}


def test_dashboard_without_prices_is_the_empty_document(artifact: Artifact) -> None:
    document = Dashboard(artifact)()
    assert document | {"created": ""} == empty_document(artifact.metadata) | {"created": ""}
    assert document["state"] == "empty"
