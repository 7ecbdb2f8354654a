"""ONNX artifact: runs in onnxruntime without torch, and detects damage."""

import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from torchcommodity import forecast
from torchcommodity.data import Panel
from torchcommodity.export import Artifact, export
from torchcommodity.forecast import Forecaster

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")
pytestmark = pytest.mark.export

WITHOUT_TORCH = """
import json, sys
import numpy as np, onnxruntime
model, inputs, output = sys.argv[1:]
session = onnxruntime.InferenceSession(model)
arrays = np.load(inputs)
for name in ("single", "batch"):
    feed = {"prices": arrays[f"{name}_prices"], "days": arrays[f"{name}_days"]}
    np.save(f"{output}_{name}.npy", session.run(["quantiles"], feed)[0])
assert json.loads(session.get_modelmeta().custom_metadata_map["metadata"])["symbols"] == ["WTI", "BRENT"]
assert not {"torch", "torchcommodity"} & sys.modules.keys()
"""
WINDOWS = {"single": ("2014-06-02", 1), "batch": ("2011-01-03", 3)}  # first date, batch size
LAST = "2016-12-26"


@pytest.fixture(scope="module")
def onnx_file(forecaster: Forecaster, once: Callable[..., Path]) -> Path:
    return once("small.onnx", lambda path: export(forecaster, path, "onnx"))


def test_onnx_equals_predict_with_and_without_torch(
    onnx_file: Path,
    forecaster: Forecaster,
    panel: Panel,
    inputs: Callable[..., tuple[Tensor, Tensor]],
    tmp_path: Path,
) -> None:
    artifact = Artifact.load(onnx_file)
    assert artifact.metadata.format == "onnx"
    batches = {
        name: [x.repeat_interleave(size, 0) for x in inputs(first, LAST)] for name, (first, size) in WINDOWS.items()
    }
    arrays = {f"{name}_{k}": x.numpy() for name, batch in batches.items() for k, x in zip(("prices", "days"), batch)}
    np.savez(tmp_path / "inputs.npz", **arrays)  # type: ignore[arg-type]
    command = [sys.executable, "-c", WITHOUT_TORCH, str(onnx_file), str(tmp_path / "inputs.npz"), str(tmp_path / "out")]
    subprocess.run(command, check=True)
    for name, (first, size) in WINDOWS.items():
        expected = forecast.predict(forecaster, panel.between(first, LAST)).log_returns.expand(size, 2, 2, 3)
        without_torch = torch.from_numpy(np.load(tmp_path / f"out_{name}.npy"))
        torch.testing.assert_close(without_torch, expected, atol=1e-5, rtol=0)
        torch.testing.assert_close(artifact(*batches[name]), expected, atol=1e-5, rtol=0)


def test_onnx_graph_itself_gives_no_numbers_for_days_and_prices_that_artifact_rejects(
    onnx_file: Path, inputs: Callable[..., tuple[Tensor, Tensor]]
) -> None:
    forward = Artifact.load(onnx_file).forward  # onnxruntime, without the checks of `Artifact`
    prices, days = (x[:, :60].repeat_interleave(6, 0) for x in inputs())
    days[1, [30, 31]] = days[1, [31, 30]]  # one date before the last
    days[2, 40] = days[2, 39]  # one date twice
    days[3] -= 15000  # before 1970
    days[4] += 40000  # after 2060
    prices[5, 3, 1] = torch.inf
    quantiles = forward(prices, days)
    assert quantiles[0].isfinite().all()
    assert quantiles[1:].isnan().all()


def test_onnx_artifact_pickled_copy_has_the_same_bits(
    onnx_file: Path, inputs: Callable[..., tuple[Tensor, Tensor]], tmp_path: Path
) -> None:
    artifact = Artifact.load(shutil.copy(onnx_file, tmp_path / "model"))  # recognized by its content
    copy = pickle.loads(pickle.dumps(artifact))
    assert copy.metadata == artifact.metadata
    assert torch.equal(copy(*inputs()), artifact(*inputs()))


def test_onnx_checksum_detects_changed_byte(onnx_file: Path, tmp_path: Path) -> None:
    content = bytearray(onnx_file.read_bytes())
    content[len(content) // 2] ^= 1
    path = tmp_path / "damaged.onnx"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is damaged"):
        Artifact.load(path)
