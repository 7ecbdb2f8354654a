"""What moved the median, said by an artifact: the parts of the forecaster, and records that are refused."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from torchcommodity.data import Panel, embedded
from torchcommodity.export import Artifact, export, panel_location
from torchcommodity.export._metadata import parse_metadata
from torchcommodity.forecast import Forecaster, fit
from torchcommodity.models import HarConfig, HarGarchConfig
from torchcommodity.training import FitConfig

pytestmark = [pytest.mark.export, pytest.mark.slow]


@pytest.fixture(scope="module")
def oil() -> Panel:
    return embedded().between("2005-01-01", "2018-12-31")


@pytest.fixture(scope="module")
def fitted(oil: Panel) -> Forecaster:
    return fit(oil)


@pytest.fixture(scope="module")
def exported(fitted: Forecaster, once: Callable[..., Path]) -> Artifact:
    return Artifact.load(once("location.pt2", lambda path: export(fitted, path)))


def test_artifact_says_what_the_forecaster_says(exported: Artifact, fitted: Forecaster, oil: Panel) -> None:
    ended = oil.values.plain().clone()
    ended[-40:, 1] = torch.nan
    panels = {
        "last rows": oil,
        "old rows": oil.between("2007-01-01", "2015-06-30"),
        "no references": oil.with_references(None),
        "a symbol that ended": replace(oil, values=type(oil.values)(ended)),
    }
    for name, panel in panels.items():
        assert panel_location(exported.metadata, panel) is not None, name
        assert_same(exported, fitted, panel)
    apart = exported.location(oil.with_references(None), references=oil.references)
    assert apart.to_pandas().equals(exported.location(oil).to_pandas())


def assert_same(artifact: Artifact, forecaster: Forecaster, panel: Panel) -> None:
    actual, expected = artifact.location(panel), forecaster.location(panel)
    assert actual.to_pandas().equals(expected.to_pandas())
    assert str(actual) == str(expected)


def test_artifact_of_a_network_on_futures_says_rolls(artifact: Artifact, forecaster: Forecaster, panel: Panel) -> None:
    before_roll = panel.between(None, "2016-12-16")
    assert_same(artifact, forecaster, before_roll)
    assert "rolls and averaging" in set(artifact.location(before_roll).to_pandas()["source"])


def test_artifact_of_monthly_averages_and_one_without_a_location(oil: Panel) -> None:
    gold = embedded(["GOLD"], frequency="monthly")
    assert_same(Artifact.from_forecaster(monthly := fit(gold)), monthly, gold)
    without = fit(oil, FitConfig(HarGarchConfig(HarConfig(location=False))))
    text = "WTI, 3 months: no change expected"
    assert str(Artifact.from_forecaster(without).location(oil)).splitlines()[0] == text


def test_artifact_of_an_earlier_version_does_not_say_it(exported: Artifact, oil: Panel) -> None:
    earlier = json.loads(exported.metadata.to_json())
    del earlier["location"]
    old = replace(exported, metadata=parse_metadata(json.dumps(earlier), ""))
    assert panel_location(old.metadata, oil) is None
    with pytest.raises(ValueError, match=r"location: the artifact must record .* export it again"):
        old.location(oil)


def test_artifact_checks_its_warmup(exported: Artifact, oil: Panel) -> None:
    with pytest.raises(ValueError, match=r"location: .* more than 252 positive prices"):
        exported.location(oil.between("2018-06-01"))


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "pairs must be sorted numbers of one of 3 symbols": lambda state: state["location.pairs"].reverse(),
    "pairs must be sorted numbers of one of 3 symbols and one of 12 prices": lambda state: state["location.pairs"][
        0
    ].__setitem__(1, 12),
    "shapes must be": lambda state: state["location.rows"].pop(),
    "state must have finite": lambda state: state.pop("location.season"),
    "state must .* got .*other": lambda state: state.update(other=[1.0]),
    "state must have finite location.coefficients": lambda state: state["location.coefficients"][0].__setitem__(
        0, float("nan")
    ),
    "Error\\(s\\) in loading state_dict for Har:\n\tsize mismatch for location.season": lambda state: state[
        "location.season"
    ].pop(),
}


@pytest.mark.parametrize("message", CHANGES)
def test_metadata_with_another_record_is_refused(exported: Artifact, message: str) -> None:
    values = copy.deepcopy(json.loads(exported.metadata.to_json()))
    CHANGES[message](values["location"]["state"])
    with pytest.raises(ValueError, match=f"location: {message}"):
        parse_metadata(json.dumps(values), "")


def test_metadata_with_a_record_equals_itself_after_json(exported: Artifact, fitted: Forecaster) -> None:
    metadata = exported.metadata
    assert parse_metadata(metadata.to_json(), metadata.sha256) == metadata
    assert metadata.location is not None
    state, expected = metadata.location.to_har(3).state_dict(), fitted.model.har.state_dict()
    for name in ("location.pairs", "location.coefficients", "location.rows", "location.season"):
        assert torch.equal(state[name], expected[name])
