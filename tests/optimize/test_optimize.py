"""Smaller and faster forecasters, on real prices: what is measured, what is removed, what stays the same."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from torchcommodity import data, forecast
from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarConfig, HarGarchConfig, HarLstmConfig
from torchcommodity.optimize import (
    compile,
    distill,
    fine_tune,
    importance,
    mixed_precision,
    profile,
    prune_inputs,
    prune_rows,
    prune_units,
    prune_weights,
    quantize,
    size,
    steps,
    table,
    verdict,
)
from torchcommodity.optimize._inputs import batch
from torchcommodity.training import FitConfig, ModelInputs, TrainConfig, model_inputs

SMALL = HarConfig(horizons=(5, 21), warmup=63)


@pytest.fixture(scope="module")
def past() -> ModelInputs:
    return model_inputs(panel(), SMALL.horizons[-1])


def panel() -> data.Panel:
    return data.embedded().select(["WTI", "SP500"]).between("2014-01-01", "2016-12-31").with_contracts({"WTI": "CL"})


@pytest.fixture(scope="module")
def trained() -> Forecaster:
    """A forecaster whose network does something at every horizon, as if it had been found to help."""
    config = FitConfig(model=HarLstmConfig(SMALL, hidden=8), train=TrainConfig(epochs=0))
    found = forecast.fit(panel(), config)
    found.model.har.shrink.fill_(0.5)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        torch.nn.init.normal_(found.model.head.weight, std=0.3)
    return found


def test_a_profile_tells_stages_operators_memory_and_writes_a_trace(
    trained: Forecaster, past: ModelInputs, tmp_path: Path
) -> None:
    found = profile(trained, past, rows=200, repeats=2, trace=tmp_path / "trace.json")
    assert sum(found.stages.values()) == pytest.approx(1)
    assert all(share > 0 for share in found.stages.values())
    assert any(cost.name == "commodity::lstm" and "[2, 200, 32]" in cost.shapes for cost in found.operators)
    assert found.peak_bytes > 200 * 2 * 8
    assert sum(cost.share for cost in found.operators) == pytest.approx(1)
    assert len(found.largest) == 3
    assert any(words.startswith("Python between the operators") for words in found.largest)
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    with pytest.raises(ValueError, match=r"rows must be in \[1, 7\d\d\] and size at least 1; got rows=9999"):
        profile(trained, past, rows=9999)


@torch.no_grad()
def asked(forecaster: Forecaster, past: ModelInputs) -> torch.Tensor:  # (1, H, N, Q)
    found: torch.Tensor = forecaster.model.eval()(*past.batch())
    return found


def kept(forecaster: Forecaster, path: Path) -> Forecaster:
    forecaster.save(path / "forecaster")
    return Forecaster.load(path / "forecaster")


ONE_EPOCH = TrainConfig(epochs=1, validation_fraction=0.2, window=63)


def test_the_smallest_weights_become_zero_and_stay_so_while_the_rest_is_tuned(
    trained: Forecaster, past: ModelInputs
) -> None:
    sparse = prune_weights(trained, 0.5)
    assert size(sparse).zeros == pytest.approx(0.5, abs=0.06)  # biases stay
    tuned = fine_tune(sparse, past, ONE_EPOCH)
    assert tuned.record.note != sparse.record.note
    for name, weight in sparse.model.state_dict().items():
        if name.endswith(("weight_hh_l0", "weight_ih_l0", "head.weight")):
            assert (tuned.model.state_dict()[name][weight == 0] == 0).all()
    assert torch.equal(tuned.model.har.shrink, trained.model.har.shrink)
    with pytest.raises(ValueError, match=r"prune_weights: share must be in \[0, 1\); got 1"):
        prune_weights(trained, 1)


def test_units_that_nothing_reads_are_removed_without_a_trace(
    trained: Forecaster, past: ModelInputs, tmp_path: Path
) -> None:
    full, dead = prune_weights(trained, 0.0), [1, 4, 5]
    with torch.no_grad():
        full.model.head.weight[:, dead] = 0
        full.model.lstm.weight_hh_l0[:, dead] = 0
    small = prune_units(full, 5)
    assert size(small).parameters < size(full).parameters
    assert small.model.lstm.hidden_size == 5
    torch.testing.assert_close(asked(small, past), asked(full, past), rtol=1e-6, atol=1e-9)
    assert torch.equal(asked(kept(small, tmp_path), past), asked(small, past))
    with pytest.raises(ValueError, match=r"prune_units: units must be in 1..8; got 9"):
        prune_units(trained, 9)


def test_inputs_and_rows_of_least_importance_are_removed(
    trained: Forecaster, past: ModelInputs, tmp_path: Path
) -> None:
    blind = prune_weights(trained, 0.0)
    with torch.no_grad():
        blind.model.lstm.weight_ih_l0[:, [0, 7]] = 0
    found = importance(blind, past, rows=40, windows=8)
    assert found.features.sum() == pytest.approx(1)
    assert found.rows.sum() == pytest.approx(1)
    assert found.features[[0, 7]].sum() == 0
    fewer = prune_inputs(blind, found, keep=1)
    assert fewer.model.config.features == (1, 2, 3, 4, 5, 6, 8)
    torch.testing.assert_close(asked(fewer, past), asked(blind, past), rtol=1e-6, atol=1e-9)
    short = prune_rows(fewer, found, keep=0.5)
    assert 1 <= short.model.config.rows < 40
    assert torch.equal(asked(kept(short, tmp_path), past), asked(short, past))
    config = FitConfig(model=HarGarchConfig(SMALL))
    with pytest.raises(ValueError, match="importance: expected a HarLstm; got HarGarch"):
        importance(forecast.fit(panel(), config), past)


def test_weights_in_fewer_bits_take_fewer_bytes_in_the_file_and_come_back_as_they_were(
    trained: Forecaster, past: ModelInputs, tmp_path: Path
) -> None:
    pytest.importorskip("torchao")
    for make, share in ((quantize, 0.5), (mixed_precision, 0.51)):
        small = make(trained)
        assert size(small).bytes <= share * size(trained).bytes
        assert size(small).file < size(trained).file
        torch.testing.assert_close(asked(small, past), asked(trained, past), rtol=1e-2, atol=1e-4)
        assert torch.equal(asked(kept(small, tmp_path), past), asked(small, past))


def test_the_numbers_of_a_linear_layer_are_those_of_torchao(trained: Forecaster) -> None:
    torchao = pytest.importorskip("torchao.quantization")
    theirs = torch.nn.Sequential(torch.nn.Linear(8, 2))
    theirs[0].load_state_dict(trained.model.head.state_dict())
    torchao.quantize_(theirs, torchao.Int8WeightOnlyConfig(version=2))
    x = torch.linspace(-1, 1, 24).reshape(3, 8)
    torch.testing.assert_close(quantize(trained).model.head(x), theirs(x), rtol=1e-5, atol=1e-6)


def test_a_student_comes_nearer_to_its_teacher_than_the_baseline_is(trained: Forecaster, past: ModelInputs) -> None:
    lessons = replace(ONE_EPOCH, epochs=8, learning_rate=0.03, weight_decay=0.0)
    student = distill(trained, past, HarLstmConfig(SMALL, hidden=3), lessons, weight=1.0)
    assert size(student).parameters < size(trained).parameters
    change = student.record.validation[student.record.epoch - 1]
    assert min(change) < 0  # per cent of the distance between baseline and teacher, on rows that were held back
    assert ((student.model.har.shrink > 0) == (torch.tensor(change) < 0)).all()
    with pytest.raises(ValueError, match="distill: expected the teacher's econometric settings"):
        distill(trained, past, HarLstmConfig(hidden=3))


def test_the_table_holds_every_step_and_a_verdict(trained: Forecaster, past: ModelInputs) -> None:
    pytest.importorskip("torchao")
    start = len(past.prices) - 120
    made = steps(trained, past.before(start), batch(past, 150, 1, 21), tune=ONE_EPOCH, compiled=False)
    found = {row.step: row for row in table(made, past, start, rows=150, large=3, calls=5, large_calls=2)}
    assert list(found) == list(made)
    assert found["last row only"].crps == found["original"].crps
    assert found["last row only"].dm_p[0] != found["last row only"].dm_p[0]  # NaN: the same forecasts
    assert found["combination"].size.bytes < found["original"].size.bytes
    assert found["floor: no network"].size.parameters == 0
    assert "goal 1/4" in verdict(tuple(found.values()))
    with pytest.raises(ValueError, match="optimize: expected a HarLstm; got HarGarch"):
        steps(made["floor: no network"].forecaster, past, batch(past, 150, 1, 21))


def test_what_compiles_to_itself_is_no_different(
    trained: Forecaster, past: ModelInputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "compile", lambda model, **_: model)
    found = compile(trained.model, batch(past, 150, 1, 21), rounds=5)
    assert found.difference == 0
    assert found.cold_seconds > 0
    assert found.gain.low <= found.gain.ratio <= found.gain.high
