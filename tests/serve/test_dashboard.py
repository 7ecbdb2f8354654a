"""The document of the page: every number in it is the artifact's on rows up to its day, and nothing looks ahead."""

import json
import threading
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from torchcommodity.data import Finding, Panel, embedded
from torchcommodity.export import Artifact, RawPriceForecaster, export, make_metadata
from torchcommodity.forecast import fit
from torchcommodity.serve.dashboard import Dashboard, document, empty
from torchcommodity.serve.dashboard._background_refresh import Renewal
from torchcommodity.serve.dashboard._model_card import age
from torchcommodity.serve.dashboard._past_forecasts import ROWS, hindsight

TODAY = date(2019, 1, 5)


def artifact_of(panel: Panel, through: str) -> Artifact:
    """What `export` writes, without the file."""
    forecaster = fit(panel.between(None, through))
    return Artifact(make_metadata(forecaster, "pt2"), RawPriceForecaster(forecaster))


@pytest.fixture(scope="module")
def panel() -> Panel:
    return embedded()["WTI", "SP500"].between("2015-01-01", "2018-12-31")


@pytest.fixture(scope="module")
def short(panel: Panel) -> Panel:
    """Few rows beyond the warm-up: few calls."""
    return panel.between("2017-11-01")


@pytest.fixture(scope="module")
def artifact(panel: Panel) -> Artifact:
    return artifact_of(panel, "2018-06-29")


@pytest.fixture(scope="module")
def shown(artifact: Artifact, panel: Panel) -> dict[str, Any]:
    return document(artifact, panel, "embedded", TODAY)


def past_of(shown: dict[str, Any], symbol: str, rows: int) -> dict[str, Any]:
    found = next(one for one in shown["symbols"] if one["symbol"] == symbol)
    return next(one for one in found["past"] if one["rows"] == rows)


def closes(panel: Panel) -> dict[str, float]:
    """Day to the last price at or before it: what a forecast for the day is judged by."""
    frame = panel.to_pandas().ffill()
    return dict(zip(frame.index.strftime("%Y-%m-%d"), frame[panel.symbols[0]]))


def answer(artifact: Artifact, panel: Panel) -> torch.Tensor:  # (H, N, Q)
    return artifact(panel.values.plain()[None], torch.from_numpy(panel.dates.astype(np.int64))[None])[0]


def test_past_forecasts_are_an_exported_artefacts_answers_on_rows_cut_there(tmp_path: Path) -> None:
    wti = embedded()["WTI"].between("2015-01-01", "2018-12-31")
    artifact = Artifact.load(export(fit(wti), tmp_path / "wti.pt2"))
    shown = document(artifact, wti, "embedded", TODAY)
    prices = closes(wti)
    for h, rows in enumerate(artifact.metadata.horizons):
        past = past_of(shown, "WTI", rows)
        for k in (0, len(past["target"]) - 1):
            made, due = (shown["days"][past[name][k]] for name in ("origin", "target"))
            expected = prices[made] * answer(artifact, wti.between(None, made))[h, 0].exp()
            for level, path in past["quantiles"].items():
                place = artifact.metadata.levels.index(float(level))
                assert path[k] == pytest.approx(expected[place].item(), rel=1e-6)
            assert past["realized"][k] == pytest.approx(prices[due], rel=1e-6)
            assert past["target"][k] - past["origin"][k] == rows
    now = shown["symbols"][0]["forecasts"][1]
    assert now["quantiles"]["0.5"] == pytest.approx(
        prices[shown["symbols"][0]["origin"]] * answer(artifact, wti)[1, 0, 9].exp().item()
    )
    assert (now["rows"], now["date"]) == (21, "2019-01-30")


def test_later_prices_change_no_earlier_forecast(artifact: Artifact, panel: Panel) -> None:
    row = len(panel) - 60
    later = panel.values.plain().clone()
    later[row + 1 :] *= 3
    before = hindsight(artifact, panel, 80)
    after = hindsight(artifact, replace(panel, values=later), 80)
    kept = row + 1 - before.first
    assert torch.equal(before.quantiles[:kept], after.quantiles[:kept])
    assert not torch.equal(before.quantiles[kept:], after.quantiles[kept:])
    assert before.met[kept - 5, 0, 0].isfinite()
    assert not torch.equal(before.met[kept - 4 : kept, 0], after.met[kept - 4 : kept, 0])


def test_only_the_last_rows_are_looked_back_on(shown: dict[str, Any], panel: Panel) -> None:
    for symbol in panel.symbols:
        for rows in (5, 21, 63, 126):
            past = past_of(shown, symbol, rows)
            assert 200 < len(past["target"]) <= ROWS
            assert shown["days"][past["target"][0]] >= str(panel.dates[-ROWS])


@pytest.mark.parametrize("seen", [True, False])
def test_coverage_is_what_a_plain_count_gives(shown: dict[str, Any], seen: bool) -> None:
    for record in shown["coverage"]:
        if record["symbol"] is None or record["seen"] != seen:
            continue
        past = past_of(shown, record["symbol"], record["horizon"])
        mine = [k for k, row in enumerate(past["target"]) if (shown["days"][row] <= "2018-06-29") == seen]
        assert record["forecasts"] == len(mine)
        assert (record["first"], record["last"]) == tuple(shown["days"][past["target"][k]] for k in (mine[0], mine[-1]))
        apart, free = 0, -1
        for k in mine:
            if past["origin"][k] >= free:
                apart, free = apart + 1, past["target"][k]
        assert record["apart"] == apart
        for band, (low, high) in zip(record["bands"], (("0.25", "0.75"), ("0.1", "0.9"), ("0.05", "0.95"))):
            inside = [past["quantiles"][low][k] <= past["realized"][k] <= past["quantiles"][high][k] for k in mine]
            assert band["held"] == pytest.approx(sum(inside) / len(inside), abs=1e-6)
            assert band["chance"][0] <= band["stated"] <= band["chance"][1]


def test_all_together_are_the_sum_and_no_more_independent(shown: dict[str, Any]) -> None:
    of = {name: next(r for r in shown["coverage"] if (r["symbol"], r["horizon"], r["seen"]) == (name, 63, False))
          for name in (None, "WTI", "SP500")}  # fmt: skip
    assert of[None]["forecasts"] == of["WTI"]["forecasts"] + of["SP500"]["forecasts"]
    assert of[None]["apart"] <= of["WTI"]["apart"] + 1


def test_the_document_is_json_and_tells_ages(shown: dict[str, Any]) -> None:
    assert json.loads(json.dumps(shown, allow_nan=False)) == json.loads(json.dumps(shown))
    assert (shown["prices"]["age"], shown["prices"]["stale"], shown["state"]) == ("5 days", False, "ready")
    assert shown["prices"]["columns"][0]["publisher"].startswith("US EIA")
    assert shown["model"]["trained_through"] == "2018-06-29"
    assert shown["correlation"]["symbols"] == ["WTI", "SP500"]
    assert shown["correlation"]["dates"][-1] == "2018-12-31"


def test_old_prices_are_called_old(artifact: Artifact, short: Panel) -> None:
    shown = document(artifact, short, "embedded", date(2026, 11, 21))
    assert shown["prices"]["stale"]
    assert shown["prices"]["age"] == "7 years and 10 months"
    assert [age(days) for days in (-1, 60, 61, 731)] == ["today", "60 days", "2 months", "2 years"]


def test_one_symbol_has_no_pair(panel: Panel, short: Panel) -> None:
    wti = panel.select(["WTI"])
    shown = document(artifact_of(wti, "2018-06-29"), short, "embedded", TODAY)
    assert "no pair" in shown["correlation"]["missing"]
    assert len(shown["symbols"]) == 1


def test_a_symbol_in_its_warm_up_says_so_and_others_go_on(artifact: Artifact, short: Panel) -> None:
    values = short.values.plain().clone()
    values[:-100, 1] = torch.nan
    shown = document(artifact, replace(short, values=values), "embedded", TODAY)
    wti, young = shown["symbols"]
    assert len(wti["forecasts"]) == 4
    assert young["forecasts"] == []
    assert "needs more than 252" in young["missing"]


def test_a_symbol_without_newest_prices_starts_from_its_last_one(artifact: Artifact, short: Panel) -> None:
    values = short.values.plain().clone()
    values[-3:, 0] = torch.nan
    shown = document(artifact, replace(short, values=values), "embedded", TODAY)
    assert (shown["symbols"][0]["origin"], shown["symbols"][0]["rows_behind"]) == (str(short.dates[-4]), 3)
    assert shown["symbols"][0]["recent"]["prices"][-1] is None
    assert shown["prices"]["last"] == str(short.dates[-1])


def test_prices_that_do_not_fit_are_refused_in_words(artifact: Artifact, panel: Panel) -> None:
    with pytest.raises(ValueError, match="SP500 not in WTI"):
        document(artifact, panel.select(["WTI"]), "embedded", TODAY)
    with pytest.raises(ValueError, match="at least 253 rows"):
        document(artifact, panel.between("2018-10-01"), "embedded", TODAY)
    with pytest.raises(ValueError, match="must be a spot price"):
        document(artifact, panel.with_contracts({"WTI": "CL"}), "embedded", TODAY)


def test_rolls_are_part_of_what_happened(panel: Panel, short: Panel) -> None:
    front = panel.select(["WTI"]).with_contracts({"WTI": "CL"})  # as if
    shown = document(artifact_of(front, "2018-06-29"), short, "embedded", TODAY)
    past = past_of(shown, "WTI", 21)
    prices = closes(front)
    assert past["realized"][-1] == pytest.approx(prices[shown["days"][past["target"][-1]]], rel=1e-6)
    assert shown["symbols"][0]["contract"] == "CL"
    assert "WTI" in shown["model"]["contract_names"][0]


def test_the_work_is_done_again_only_for_other_prices(artifact: Artifact, short: Panel) -> None:
    given = [short]
    dashboard = Dashboard(artifact, lambda: given[0], "embedded")
    first = dashboard()
    assert dashboard() is first
    given[0] = replace(short, findings=(Finding("gap", "WTI", "2018-01-02", 0, "", ""),))
    assert dashboard()["findings"]
    assert dashboard() is not first
    assert Dashboard(artifact)() | {"made": ""} == empty(artifact.metadata) | {"made": ""}


def test_a_look_back_ends_with_the_program(artifact: Artifact, short: Panel, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Thread()
    monkeypatch.setattr(threading, "main_thread", lambda: ended)
    with pytest.raises(SystemExit):
        hindsight(artifact, short)


def test_an_error_is_told_and_the_last_document_stays() -> None:
    said: list[Any] = [ValueError("no file prices.csv"), {"state": "ready"}, OSError("gone"), RuntimeError("secret")]

    def make() -> dict[str, Any]:
        found = said.pop(0)
        if isinstance(found, Exception):
            raise found
        made: dict[str, Any] = found
        return made

    renewal = Renewal(make, every=0.0)

    def look() -> tuple[Any, str]:
        renewal._due = 0.0
        found = renewal.look()
        while found.working:
            found = renewal.look()
        return found.document, found.error

    assert look() == (None, "no file prices.csv")
    assert look() == ({"state": "ready"}, "")
    assert look() == ({"state": "ready"}, "gone")
    document, words = look()
    assert document == {"state": "ready"}
    assert "secret" not in words
    assert "log" in words
