"""What is scored: origins, outcomes and their fingerprint."""

from typing import get_args

import numpy as np
import pytest
import torch

from torchcommodity._choices import TrackName
from torchcommodity.data import embedded
from torchcommodity.scoreboard import TRACKS, Task, load_track, make_task


def test_origins_are_the_last_rows_of_weeks(task: Task) -> None:
    weekdays = (task.origins.astype(int) + 3) % 7
    assert (np.diff(task.origins) >= np.timedelta64(4, "D")).all()
    assert (weekdays == 4).mean() > 0.9  # Friday, but for holidays
    assert (task.origins[0], task.origins[-1]) == (np.datetime64("2015-01-02"), np.datetime64("2016-12-30"))


def test_outcomes_end_in_the_test_years_and_are_prices_of_the_panel(task: Task) -> None:
    table = task.outcomes()
    assert table["date"].max() <= "2016-12-30"
    frame = task.panel.to_pandas()
    for row in table.sample(20, random_state=0).itertuples():
        own = frame[row.symbol].dropna().loc[row.origin :]  # type: ignore[misc]
        assert (own.iloc[0], own.iloc[row.horizon]) == (row.price, row.outcome)
        assert f"{own.index[row.horizon]:%Y-%m-%d}" == row.date


def test_make_task_leaves_out_symbols_without_history() -> None:
    prices = embedded(["WTI", "ULSD_NYH"]).between("2004-01-01", "2008-12-31")
    task = make_task(prices, first_year=2007)
    scored = torch.isfinite(task.targets[:, 0, 1]).numpy()
    assert not scored.any()  # ULSD begins in June 2006
    assert torch.isfinite(task.targets[:, 0, 0]).sum() > 100


def test_fingerprint_changes_with_an_outcome(task: Task) -> None:
    panel = embedded(["WTI", "HENRY_HUB"]).between("2010-01-01", "2016-12-31")
    assert make_task(panel, first_year=2015).fingerprint == task.fingerprint
    frame = panel.to_pandas()
    frame.loc["2016-12-23", "WTI"] += 0.01
    assert make_task(frame, first_year=2015).fingerprint != task.fingerprint


def test_make_task_rejects_years_without_outcomes() -> None:
    with pytest.raises(ValueError, match="504 positive prices before a test year, and a target that ends in 2016"):
        make_task(embedded(["WTI"]).between("2015-01-01", "2016-12-31"), first_year=2016)


def test_make_task_rejects_a_year_as_text() -> None:
    with pytest.raises(TypeError, match="make_task: first_year must be an int; got '2016'"):
        make_task(embedded(["WTI"]), first_year="2016")  # type: ignore[arg-type]


def test_tracks_are_those_of_the_command_line() -> None:
    assert tuple(TRACKS) == get_args(TrackName)
    with pytest.raises(ValueError, match="must be one of daily, monthly; got 'hourly'"):
        load_track("hourly")  # type: ignore[arg-type]  # what the message is for
