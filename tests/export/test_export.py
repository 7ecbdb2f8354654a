"""Artifacts: the bits of `predict`, what they say of themselves, and what they refuse."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from torchcommodity import data, forecast
from torchcommodity.export import Artifact, export
from torchcommodity.export import _checksum as seal
from torchcommodity.export._formats import aoti, pt2
from torchcommodity.export._metadata import about
from torchcommodity.export._program import program
from torchcommodity.export._roll_calendar import Calendar
from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarConfig, HarLstmConfig
from torchcommodity.opkit._native import native_libraries
from torchcommodity.training import FitConfig, TrainConfig

SMALL = HarConfig(horizons=(2, 5), levels=(0.1, 0.5, 0.9), halflives=(8, 21), trends=(5,), warmup=30)


@pytest.fixture(scope="module")
def panel() -> data.Panel:
    """Spot oil as if it were the front month, and a share index; each has days on which only the other has a price."""
    panel = data.embedded()["WTI", "SP500"].between("2010-01-01", "2016-12-31")
    assert panel.values.isnan().any()
    return panel.with_contracts({"WTI": "CL"})


@pytest.fixture(scope="module")
def forecaster(panel: data.Panel) -> Forecaster:
    """With a network that has learned something, whatever it is worth."""
    made = forecast.fit(panel, FitConfig(HarLstmConfig(SMALL, hidden=4), TrainConfig(epochs=0)))
    with torch.no_grad():
        torch.nn.init.normal_(made.model.head.weight, generator=torch.Generator().manual_seed(0))
    made.model.har.shrink.fill_(0.5)
    return made


@pytest.fixture(scope="module")
def file(forecaster: Forecaster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(forecaster, tmp_path_factory.mktemp("export") / "small.pt2")


@pytest.fixture(scope="module")
def artifact(file: Path) -> Artifact:
    return Artifact.load(file)


def inputs(panel: data.Panel) -> tuple[Tensor, Tensor]:
    return panel.values.plain()[None], torch.from_numpy(panel.dates.astype(np.int64))[None]


def damaged(file: Path, folder: Path, content: bytes) -> Path:
    path = folder / file.name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("last", ["2010-04-21", "2012-02-29", "2016-12-26", "2016-12-30"])
def test_the_bits_of_predict(artifact: Artifact, forecaster: Forecaster, panel: data.Panel, last: str) -> None:
    window = panel.between(None, last)
    expected = forecast.predict(forecaster, window).log_returns
    with forecast.threads.one_thread():
        assert torch.equal(artifact(*inputs(window))[0], expected)
    assert expected.isfinite().all()


def test_any_batch_and_any_strides(artifact: Artifact, panel: data.Panel) -> None:
    prices, days = inputs(panel)
    three = (
        torch.cat([prices[:, k : k + 200] for k in (0, 7, 500)]),
        torch.cat([days[:, k : k + 200] for k in (0, 7, 500)]),
    )
    together = artifact(three[0].transpose(1, 2).contiguous().transpose(1, 2), three[1])
    for k in range(3):
        torch.testing.assert_close(
            together[k : k + 1], artifact(three[0][k : k + 1], three[1][k : k + 1]), rtol=1e-6, atol=0
        )


def test_it_says_what_it_is(artifact: Artifact, file: Path, forecaster: Forecaster) -> None:
    said = artifact.about
    assert (said.format, said.symbols, said.contracts) == ("pt2", ("WTI", "SP500"), ("CL", None))
    assert (said.horizons, said.levels, said.warmup) == ((2, 5), (0.1, 0.5, 0.9), 30)
    assert said.units == ("$/bbl", "index")
    assert said.provenance == forecaster.sources
    assert said.provenance[0]["publisher"].startswith("US EIA")
    assert said.trained_through == "2016-12-30"
    assert file.read_bytes().endswith(said.sha256.encode())
    assert str(Path(__file__).parents[2]).encode() not in file.read_bytes()  # no path of the machine that wrote it


@pytest.mark.parametrize("code", ["CL", "BRN", "G", "C", "GC", "FC"])
def test_the_calendar_is_that_of_the_rolls(code: str) -> None:
    days = np.arange("1970-01-01", "2060-12-31", dtype="datetime64[D]")
    kept = days[np.random.default_rng(0).random(len(days)) < 0.6]
    for first, last in ((0, len(kept)), (0, 5), (700, 900), (11000, 11003)):
        rows = kept[first:last]
        found = Calendar([None, code], 126)(torch.from_numpy(rows.astype(np.int64))[None])[0]
        assert np.array_equal(found[:, 1].numpy(), data.roll_months(code, rows, 126))
        assert not found[:, 0].any()


def test_a_day_outside_the_calendar_is_no_other_day() -> None:
    for day in (-1, -40, 60000):
        with pytest.raises(IndexError):
            Calendar(["CL"], 5)(torch.tensor([[day]]))


def test_one_changed_byte_anywhere_is_refused(file: Path, tmp_path: Path) -> None:
    whole = file.read_bytes()
    for place in [*range(0, len(whole), len(whole) // 97), *range(len(whole) - 100, len(whole))]:
        content = bytearray(whole)
        content[place] ^= 1 << place % 8
        with pytest.raises(ValueError, match=r"Artifact.load: .*(damaged|foreign)"):
            Artifact.load(damaged(file, tmp_path, bytes(content)))


@pytest.mark.parametrize("kept", [0, 1, 100, 5000, -1, -65, -200])
def test_a_file_cut_short_is_refused(file: Path, tmp_path: Path, kept: int) -> None:
    with pytest.raises(ValueError, match="cut short"):
        Artifact.load(damaged(file, tmp_path, file.read_bytes()[:kept]))


def test_a_foreign_file_is_refused(forecaster: Forecaster, tmp_path: Path) -> None:
    forecaster.save(tmp_path / "forecaster.safetensors")
    with pytest.raises(ValueError, match="expected a whole file that torchcommodity export wrote"):
        Artifact.load(tmp_path / "forecaster.safetensors")


def evil(records: dict[str, bytes], change: str) -> dict[str, bytes]:
    graph = json.loads(records[pt2.GRAPH])
    nodes = graph["graph_module"]["graph"]["nodes"]
    call = "__import__('os').getcwd()"
    if change == "operator":
        nodes[0]["target"] = "torch.hub.load"
    elif change == "file":
        nodes[0]["target"] = "torch.ops.aten.from_file.default"
    elif change == "size":
        sizes = graph["graph_module"]["graph"]["sym_int_values"]
        sizes[next(iter(sizes))]["as_expr"]["expr_str"] = call
    elif change == "guard":
        graph["guards_code"] = [call]
    elif change == "name":
        graph["graph_module"]["graph"]["inputs"][0]["as_tensor"]["name"] = f"x={call}"
    else:
        payloads = json.loads(records[pt2.PAYLOADS[0]])
        next(iter(payloads["config"].values()))["use_pickle"] = True
        return records | {pt2.PAYLOADS[0]: json.dumps(payloads).encode()}
    return records | {pt2.GRAPH: json.dumps(graph).encode()}


@pytest.mark.parametrize("change", ["operator", "file", "size", "guard", "name", "pickle"])
def test_a_graph_with_code_is_refused_although_its_checksum_is_right(file: Path, tmp_path: Path, change: str) -> None:
    records = evil(pt2.read_records(file.read_bytes()), change)
    path = tmp_path / "evil.pt2"
    path.write_bytes(seal.sealed_zip(pt2.packed(records)))
    with pytest.raises(ValueError, match=r"a graph of tensor operators alone|plain tensors alone"):
        Artifact.load(path)


def test_bad_inputs_are_refused_in_words(artifact: Artifact, panel: data.Panel) -> None:
    prices, days = (x[:, :60] for x in inputs(panel))
    bad = prices.clone()
    bad[0, 3, 1] = torch.inf
    for arguments, message in (
        ((prices.float(), days), "prices must be float64"),
        ((prices[..., :1], days), r"prices must be \(B, T, N\) with N=2"),
        ((prices, days[:, 1:]), r"days \(B, T\)"),
        ((prices[:, :30], days[:, :30]), "at least 31 rows are needed; got 30"),
        ((bad, days), "finite or NaN"),
        ((prices, days.flip(1)), "days must rise"),
        ((prices, days + 40000), "days must lie between 1970-01-01 and 2060-12-31; got 2119"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            artifact(*arguments)


def test_a_forecaster_with_a_curve_is_only_exported_if_that_is_said(forecaster: Forecaster, tmp_path: Path) -> None:
    told = replace(forecaster, record=replace(forecaster.record, curve=True))
    with pytest.raises(ValueError, match="say without_curve"):
        export(told, tmp_path / "curve.pt2")
    with pytest.raises(ValueError, match="format must be one of pt2, aoti, onnx; got 'tflite'"):
        export(forecaster, tmp_path / "x", "tflite")
    assert not list(tmp_path.iterdir())


ALONE = """
import json, sys
import numpy as np, onnxruntime
file, inputs, out = sys.argv[1:]
session = onnxruntime.InferenceSession(file)
given = np.load(inputs)
np.save(out, session.run(["quantiles"], {"prices": given["prices"], "days": given["days"]})[0])
assert json.loads(session.get_modelmeta().custom_metadata_map["about"])["symbols"] == ["WTI", "SP500"]
assert not {"torch", "torchcommodity"} & sys.modules.keys()
"""


def test_onnx_runs_without_torch(forecaster: Forecaster, panel: data.Panel, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    path = export(forecaster, tmp_path / "small.onnx", "onnx")
    artifact = Artifact.load(path)
    assert artifact.about.format == "onnx"
    for first, copies in (("2014-06-02", 1), ("2011-01-03", 3)):
        prices, days = (x.repeat(copies, *[1] * (x.dim() - 1)) for x in inputs(panel.between(first, "2016-12-26")))
        np.savez(tmp_path / "inputs.npz", prices=prices.numpy(), days=days.numpy())
        command = [sys.executable, "-c", ALONE, str(path), str(tmp_path / "inputs.npz"), str(tmp_path / "out.npy")]
        subprocess.run(command, check=True)
        expected = forecast.predict(forecaster, panel.between(first, "2016-12-26")).log_returns.expand(copies, 2, 2, 3)
        alone = torch.from_numpy(np.load(tmp_path / "out.npy"))
        torch.testing.assert_close(alone, expected, atol=1e-5, rtol=0)
        torch.testing.assert_close(artifact(prices, days), expected, atol=1e-5, rtol=0)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    with pytest.raises(ValueError, match="is damaged"):
        Artifact.load(damaged(path, tmp_path, bytes(content)))


FRESH = """
import sys, torch
package, library, data = sys.argv[1:]
torch.ops.load_library(library)
prices, days, expected = torch.load(data)
got = torch._inductor.aoti_load_package(package)(prices, days)
torch.testing.assert_close(got, expected, atol=1e-5, rtol=0)
assert not any(name.startswith("torchcommodity") for name in sys.modules)
"""
QUICK = {"aot_inductor.precompile_headers": False, "aot_inductor.compile_wrapper_opt_level": "O0"}


@pytest.mark.skipif(
    shutil.which("g++") is None or not native_libraries(), reason="needs a compiler and the native library"
)
@pytest.mark.filterwarnings("ignore")  # of torch, while Inductor is imported and compiles
def test_aoti_carries_the_operators(forecaster: Forecaster, panel: data.Panel, tmp_path: Path) -> None:
    facts = about(forecaster, "aoti")
    package = aoti.to_bytes(program(forecaster, facts.least_rows), facts, QUICK)
    path = tmp_path / "small.aoti.pt2"
    path.write_bytes(seal.sealed_zip(package))
    artifact = Artifact.load(path)
    assert artifact.about.format == "aoti"
    window = panel.between("2014-06-02", "2016-12-26")
    expected = forecast.predict(forecaster, window).log_returns[None]
    torch.testing.assert_close(artifact(*inputs(window)), expected, atol=1e-5, rtol=0)
    records = pt2.read_records(path.read_bytes())
    (tmp_path / "_C.so").write_bytes(next(records[name] for name in records if name.startswith(aoti.LIBRARY)))
    torch.save((*inputs(window), expected), tmp_path / "data.pt")
    command = [sys.executable, "-c", FRESH, str(path), str(tmp_path / "_C.so"), str(tmp_path / "data.pt")]
    subprocess.run(command, check=True)
