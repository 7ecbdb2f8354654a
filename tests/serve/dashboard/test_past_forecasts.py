"""Past forecasts have no look-ahead, and end with the program."""

import threading
from dataclasses import replace

import pytest
import torch

from torchcommodity.data import Panel, embedded
from torchcommodity.export import Artifact, RawPriceForecaster, make_metadata
from torchcommodity.forecast import fit
from torchcommodity.serve.dashboard._past_forecasts import past_forecasts


@pytest.fixture(scope="module")
def panel() -> Panel:
    return embedded(["WTI", "BRENT"]).between("2015-01-01", "2018-12-31")


@pytest.fixture(scope="module")
def artifact(panel: Panel) -> Artifact:
    forecaster = fit(panel.between(None, "2018-06-29"))
    return Artifact(make_metadata(forecaster, "pt2"), RawPriceForecaster(forecaster))


def test_past_forecasts_do_not_depend_on_later_prices(artifact: Artifact, panel: Panel) -> None:
    row = len(panel) - 60
    changed = panel.values.plain().clone()
    changed[row + 1 :] *= 3
    before = past_forecasts(artifact, panel, 80)
    after = past_forecasts(artifact, replace(panel, values=changed), 80)
    unchanged = row + 1 - before.first_origin
    assert torch.equal(before.quantiles[:unchanged], after.quantiles[:unchanged])
    assert not torch.equal(before.quantiles[unchanged:], after.quantiles[unchanged:])
    assert before.outcomes[unchanged - 5, 0, 0].isfinite()
    assert not torch.equal(before.outcomes[unchanged - 4 : unchanged, 0], after.outcomes[unchanged - 4 : unchanged, 0])


def test_past_forecasts_stop_when_the_program_exits(
    artifact: Artifact, panel: Panel, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished = threading.Thread()
    monkeypatch.setattr(threading, "main_thread", lambda: finished)
    with pytest.raises(SystemExit):
        past_forecasts(artifact, panel.between("2017-11-01"))
