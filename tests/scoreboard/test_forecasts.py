"""Forecasts of a submission: a file and a function agree, defects have line and value, no future is visible."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from torchcommodity.data import DataError, Panel, read_quantiles
from torchcommodity.forecast import baselines, pretrained
from torchcommodity.models import HarConfig
from torchcommodity.scoreboard import ForecastFunction, Task, align_quantiles, call_function, check_look_ahead
from torchcommodity.training import ModelInputs, Prediction, model_inputs


def test_file_and_function_agree(task: Task, submission: pd.DataFrame, forecaster: ForecastFunction) -> None:
    file, function = align_quantiles(read_quantiles(submission), task), call_function(forecaster, task)
    scored = torch.isfinite(task.targets)
    torch.testing.assert_close(file[scored], function[scored])
    assert file[~scored].isnan().all()


def test_second_forecast_in_another_spelling_is_rejected(task: Task, submission: pd.DataFrame) -> None:
    month = submission[submission["horizon"].astype(str) == "21"]
    assert len(month)
    table = read_quantiles(pd.concat([submission.astype({"horizon": str}), month.assign(horizon="1m")]))
    with pytest.raises(DataError, match=r"expected one forecast of an origin, symbol and horizon, .*; got '1m'"):
        align_quantiles(table, task)


def test_function_may_return_a_tensor_that_requires_gradients(task: Task, forecaster: ForecastFunction) -> None:
    quantiles = call_function(lambda *arguments: torch.as_tensor(forecaster(*arguments)).requires_grad_(), task)
    assert torch.equal(quantiles.nan_to_num(), call_function(forecaster, task).nan_to_num())


def test_function_sees_no_row_after_the_origin(task: Task) -> None:
    last: list[np.datetime64] = []

    def forecast(panel: Panel, horizons: Sequence[int], levels: Sequence[float]) -> np.ndarray:
        last.append(panel.dates[-1])
        assert panel.findings == ()
        return np.full((len(horizons), len(panel.symbols), len(levels)), np.nan)

    assert call_function(forecast, task).isnan().all()
    assert last == list(task.origins)


def test_pretrained_model_is_a_function(task: Task) -> None:
    def pipeline(contexts: list[torch.Tensor], horizon: int, levels: Sequence[float]) -> torch.Tensor:
        z, last = torch.special.ndtri(torch.tensor(levels)), torch.stack([context[-1] for context in contexts])
        deviation = 0.02 * torch.arange(1, horizon + 1).sqrt()
        return last[:, None, None] * (deviation[:, None] * z).exp()

    quantiles = call_function(pretrained(pipeline), task)
    expected = 0.02 * np.sqrt(21) * stats.norm.ppf(0.95)
    scored = torch.isfinite(task.targets[:, 1])
    assert quantiles[:, 1, :, -1][scored].numpy() == pytest.approx(expected, rel=1e-5)


RESULTS = {
    r"expected prices \(horizons, symbols, levels\) = \(4, 2, 19\); got \(4, 2\)": np.ones((4, 2)),
    "expected positive prices; got .* from 2015-01-02, WTI, horizon 5": np.zeros((4, 2, 19)),
    "expected quantiles that do not decrease with the level": np.ones((4, 2, 19)) * np.arange(19, 0, -1),
    "expected a price at every level, or NaN at all of them": np.full((4, 2, 19), [np.nan, *range(1, 19)]),
}


@pytest.mark.parametrize("message", RESULTS)
def test_call_function_rejects_results(task: Task, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call_function(lambda *_: RESULTS[message], task)


DEFECTS = {
    "row 1: expected a symbol of the task .WTI, HENRY_HUB.; got 'GOLD'": {"symbol": "GOLD"},
    "row 1: expected a horizon of the task .5, 21, 63, 126 rows.; got '10'": {"horizon": 10},
    "row 1: expected an origin of the task: the last day of a week .* got '2015-01-06'": {"origin": "2015-01-06"},
    "row 1: expected an origin of the task: .* in 2015 to 2016; got '2014-01-03'": {"origin": "2014-01-03"},
}


@pytest.mark.parametrize("message", DEFECTS)
def test_align_quantiles_names_row_and_value(task: Task, submission: pd.DataFrame, message: str) -> None:
    row = submission.head(1).assign(**DEFECTS[message])
    with pytest.raises(DataError, match=message):
        align_quantiles(read_quantiles(row), task)


def test_align_quantiles_rejects_an_origin_without_a_price(task: Task, submission: pd.DataFrame) -> None:
    o, n = np.argwhere(~(task.prices.numpy() > 0))[0]
    row = submission.head(1).assign(origin=str(task.origins[o]), symbol=task.panel.symbols[n])
    with pytest.raises(DataError, match="expected an origin on which the symbol has a positive price; got"):
        align_quantiles(read_quantiles(row), task)


def test_align_quantiles_takes_names_of_horizons_and_more_levels(task: Task, submission: pd.DataFrame) -> None:
    row = submission[submission["horizon"] == 21].head(1)
    expected = align_quantiles(read_quantiles(row), task)
    for name in ("1m", "1 month", "21"):
        named = row.assign(horizon=name, **{"0.01": 1.0})
        assert torch.equal(align_quantiles(read_quantiles(named), task).nan_to_num(), expected.nan_to_num())
    with pytest.raises(DataError, match=r"expected the levels 0.05, .*; got none of 0.4$"):
        align_quantiles(read_quantiles(row.drop(columns="0.4")), task)


def test_align_quantiles_counts_the_steps_of_statsforecast(task: Task) -> None:
    origin = task.origins[3]
    later = task.panel.dates[task.rows[3] + 1 :][:30]
    frame = pd.DataFrame({"unique_id": "WTI", "ds": later, "cutoff": origin, "RW": np.arange(1.0, 31.0)})
    for percent in range(10, 100, 10):
        frame[f"RW-lo-{percent}"], frame[f"RW-hi-{percent}"] = frame["RW"] - percent / 1e3, frame["RW"] + percent / 1e3
    earlier = frame.assign(cutoff=task.panel.dates[task.rows[3] - 1])  # not the end of a week
    quantiles = align_quantiles(read_quantiles(pd.concat([earlier, frame])), task)
    price = task.prices[3, 0].item()
    assert quantiles[3, :2, 0, 9].exp().mul(price).tolist() == pytest.approx([5.0, 21.0])
    assert torch.isfinite(quantiles).all(-1).sum() == 2


def test_check_look_ahead_finds_a_baseline_that_knows_the_future(task: Task) -> None:
    inputs, config, har = model_inputs(task.panel, 126).before(1400), HarConfig(), baselines()["har"]
    check_look_ahead("har", har, inputs, 1200, config)

    def leaky(inputs: ModelInputs, start: int, config: HarConfig) -> Prediction:
        result = har(inputs, start, config)
        return Prediction(result.quantiles * inputs.prices[start:].nanmean(), result.variance)

    with pytest.raises(ValueError, match="leaky: a forecast must not depend on later prices; got one from row 1200"):
        check_look_ahead("leaky", leaky, inputs, 1200, config)
