"""Arguments of export."""

from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from torchcommodity._choices import artifact_format
from torchcommodity.export import Artifact, export
from torchcommodity.export._export import _compare
from torchcommodity.export._export_program import RawPriceForecaster
from torchcommodity.export._formats import onnx
from torchcommodity.forecast import Forecaster


def test_export_of_forecaster_with_curve_needs_without_curve(forecaster: Forecaster, tmp_path: Path) -> None:
    with_curve = replace(forecaster, record=replace(forecaster.record, curve=True))
    with pytest.raises(ValueError, match=r"fitted with a futures curve, .* pass without_curve=True"):
        export(with_curve, tmp_path / "curve.pt2")
    assert not list(tmp_path.iterdir())


def test_export_of_forecaster_with_own_rolls_is_rejected(forecaster: Forecaster, tmp_path: Path) -> None:
    own_rolls = replace(forecaster, record=replace(forecaster.record, own_rolls=True))
    with pytest.raises(ValueError, match=r"roll on other days than by the rule of the exchange.*--roll expiry"):
        export(own_rolls, tmp_path / "rolls.pt2")
    assert not list(tmp_path.iterdir())


def test_export_rejects_unknown_format(forecaster: Forecaster, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="format must be one of pt2, aoti, onnx; got 'tflite'"):
        export(forecaster, tmp_path / "x", "tflite")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_export_reports_its_stages_and_what_torch_cannot_export(
    forecaster: Forecaster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages: list[tuple[int, int, str]] = []
    monkeypatch.setattr(torch.export, "export", Mock(side_effect=RuntimeError("no rule for aten.foo\nStack ...")))
    message = r"har-lstm cannot be exported to format 'pt2' .*\(no rule for aten.foo\).* use format 'aoti' or 'onnx'$"
    with pytest.raises(ValueError, match=message):
        export(forecaster, tmp_path / "x", progress=lambda *stage: stages.append(stage))
    assert stages == [(0, 4, "tracing the model")]
    assert not list(tmp_path.iterdir())


def test_export_without_the_packages_of_onnx_names_the_extra(
    forecaster: Forecaster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx, "find_spec", lambda name: None if name == "onnxscript" else object())
    with pytest.raises(ImportError, match=r"needs onnxscript: pip install 'torchcommodity\[export\]'"):
        export(forecaster, tmp_path / "x", "onnx")


def test_export_compares_the_file_with_the_forecaster(forecaster: Forecaster) -> None:
    graph = RawPriceForecaster(forecaster)
    _compare(Artifact.from_forecaster(forecaster), graph)
    wider = replace(Artifact.from_forecaster(forecaster), forward=lambda prices, days: 2 * graph(prices, days))
    with pytest.raises(ValueError, match="its results differ from the forecaster's by up to"):
        _compare(wider, graph)


def test_export_takes_the_format_from_the_ending(forecaster: Forecaster, tmp_path: Path) -> None:
    endings = {"m": None, "m.PT2": "pt2", "m.aoti.pt2": "aoti", "a.b.onnx": "onnx"}
    assert {name: artifact_format(name) for name in endings} == endings
    with pytest.raises(ValueError, match=r"^export: path must end with one of .*\.onnx .*m\.foo'; pass format='pt2'"):
        export(forecaster, tmp_path / "m.foo")
    assert not list(tmp_path.iterdir())


def test_export_says_at_once_that_there_is_no_folder(forecaster: Forecaster, tmp_path: Path) -> None:
    def stage(*progress: object) -> None:
        pytest.fail("the model was traced")

    for path in (tmp_path, tmp_path / "missing" / "m.pt2"):
        with pytest.raises(FileNotFoundError, match=r"^export: path must be a file in a folder that exists; got "):
            export(forecaster, path, "pt2", progress=stage)


def test_export_rejects_other_modules(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"^export: forecaster must be a Forecaster.*; got Linear$"):
        export(torch.nn.Linear(3, 3), tmp_path / "m.pt2")  # type: ignore[arg-type]
