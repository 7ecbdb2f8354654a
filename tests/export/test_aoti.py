"""AOTInductor artifact: runs in a process that loads only torch and the bundled operator library."""

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from torch_opkit import native_libraries
from torchcommodity import forecast, ops
from torchcommodity.data import Panel
from torchcommodity.export import Artifact, RawPriceForecaster, export, make_metadata
from torchcommodity.export._export_program import trace
from torchcommodity.export._formats import aoti, pt2
from torchcommodity.forecast import Forecaster

WITHOUT_PACKAGE = """
import sys, torch
package, library, data = sys.argv[1:]
torch.ops.load_library(library)
prices, days, expected = torch.load(data)
result = torch._inductor.aoti_load_package(package)(prices, days)
torch.testing.assert_close(result, expected, atol=1e-5, rtol=0)
assert not any(name.startswith("torchcommodity") for name in sys.modules)
"""
ROOT = Path(__file__).parents[2]
FAST_COMPILE = {"aot_inductor.compile_wrapper_opt_level": "O0"}


needs_compiler = pytest.mark.skipif(
    shutil.which("g++") is None or not native_libraries(), reason="needs a compiler and the native library"
)


class MeanOfMonth(torch.nn.Module):
    """Not quantiles, but of their shape: (B, 2 horizons, N, 3 levels). It compiles sooner than a forecaster."""

    def forward(self, prices: Tensor, days: Tensor) -> Tensor:
        mean = ops.rolling_mean(prices, 21)[:, -1] + days[:, -1:] % 7
        return mean[:, None, :, None] + torch.arange(3) + torch.zeros(2, 1, 1)


@pytest.mark.export
@needs_compiler
@pytest.mark.filterwarnings("ignore")  # raised inside torch while Inductor is imported and compiles
def test_aoti_bundles_the_operators(
    forecaster: Forecaster, inputs: Callable[..., tuple[Tensor, Tensor]], tmp_path: Path
) -> None:
    prices, days = inputs("2014-06-02", "2016-12-26")
    any_size = {0: torch.export.Dim("B", min=1), 1: torch.export.Dim("T", min=21)}
    example = tuple(x.repeat_interleave(2, 0) for x in (prices, days))
    program = torch.export.export(MeanOfMonth(), example, dynamic_shapes=(any_size, any_size))
    path = tmp_path / "small.aoti.pt2"
    path.write_bytes(aoti.to_bytes(program, make_metadata(forecaster, "aoti"), inductor_configs=FAST_COMPILE))
    with pytest.raises(ValueError, match=r"^Artifact.load: .*small.aoti.pt2 is machine code, .* trusted=True"):
        Artifact.load(path)
    artifact = Artifact.load(path, trusted=True)
    assert artifact.metadata.format == "aoti"
    expected = MeanOfMonth()(prices, days)
    torch.testing.assert_close(artifact(prices, days), expected, atol=1e-5, rtol=0)
    records = pt2.read_records(path.read_bytes())
    sources = [content for name, content in records.items() if name.endswith(".cpp")]
    assert sources, "torch 2.11 finds the metadata by the names of the sources"
    assert not any(sources), "the sources hold local paths"
    (tmp_path / "_C.so").write_bytes(next(records[name] for name in records if name.startswith(aoti.LIBRARY)))
    torch.save((prices, days, expected), tmp_path / "data.pt")
    command = [sys.executable, "-c", WITHOUT_PACKAGE, str(path), str(tmp_path / "_C.so"), str(tmp_path / "data.pt")]
    subprocess.run(command, check=True)
    load = [
        sys.executable,
        "-c",
        "import sys; from torchcommodity.export import Artifact as A; A.load(sys.argv[1], trusted=True)",
    ]
    subprocess.run([*load, str(path)], check=True, env={"PYTHONPATH": str(ROOT), "PATH": ""})  # without a compiler


@pytest.mark.slow
@pytest.mark.export
@needs_compiler
@pytest.mark.filterwarnings("ignore")  # raised inside torch while Inductor is imported and compiles
def test_aoti_equals_predict(
    forecaster: Forecaster, panel: Panel, inputs: Callable[..., tuple[Tensor, Tensor]], tmp_path: Path
) -> None:
    metadata = make_metadata(forecaster, "aoti")
    program = trace(RawPriceForecaster(forecaster), metadata.min_rows)
    path = tmp_path / "small.aoti.pt2"
    path.write_bytes(aoti.to_bytes(program, metadata, inductor_configs=FAST_COMPILE))
    artifact = Artifact.load(path, trusted=True)
    prices, days = inputs("2014-06-02", "2016-12-26")
    expected = forecast.predict(forecaster, panel.between("2014-06-02", "2016-12-26")).log_returns[None]
    torch.testing.assert_close(artifact(prices, days), expected, atol=1e-5, rtol=0)
    program_alone = artifact.forward  # what a program without `Artifact` calls
    assert program_alone(prices, days.flip(1)).isnan().all()


@pytest.mark.parametrize(
    ("compiled_for", "accepted"),
    [("AVX2", True), ("AVX512", True), ("AVX512 AVX512_VNNI", False), ("AVX512 AVX512_VNNI AMX_TILE", False)],
)
def test_aoti_needs_the_instructions_that_it_was_compiled_for(
    compiled_for: str, accepted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = {"AOTI_DEVICE_KEY": "cpu", "AOTI_CPU_ISA": compiled_for}
    loader = torch._C._aoti.AOTIModelPackageLoader  # type: ignore[attr-defined]
    monkeypatch.setattr(loader, "load_metadata_from_package", lambda path, name: target)
    monkeypatch.setattr("torch._inductor.cpu_vec_isa.x86_isa_checker", lambda: ["avx2", "avx512"])
    monkeypatch.setattr(torch._inductor, "aoti_load_package", lambda path, device_index: None)
    other = pytest.raises(ValueError, match=r"AOTI_CPU_ISA AVX512 .*; this one has AVX2 AVX512$")
    with contextlib.nullcontext() if accepted else other:
        aoti.from_bytes(b"package")


def test_aoti_without_a_compiler_is_refused_before_any_work(forecaster: Forecaster, tmp_path: Path) -> None:
    stages: list[str] = []
    no_compiler = torch._inductor.config.patch({"cpp.cxx": ("no-such-compiler",)})
    with no_compiler, pytest.raises(ValueError, match=r"needs a C\+\+ compiler.*; use format 'pt2' or 'onnx'"):
        export(forecaster, tmp_path / "x", "aoti", progress=lambda done, total, stage: stages.append(stage))
    assert not stages
    assert not list(tmp_path.iterdir())
