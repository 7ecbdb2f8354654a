"""Arguments of export."""

from dataclasses import replace
from pathlib import Path

import pytest

from torchcommodity.export import export
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
