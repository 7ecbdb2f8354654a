"""AOTInductor artifact: runs in a process that loads only torch and the bundled operator library."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from torchcommodity import forecast
from torchcommodity.data import Panel
from torchcommodity.export import Artifact, make_metadata
from torchcommodity.export._checksum import append_zip_checksum
from torchcommodity.export._export_program import export_program
from torchcommodity.export._formats import aoti, pt2
from torchcommodity.forecast import Forecaster
from torchcommodity.opkit import native_libraries

WITHOUT_PACKAGE = """
import sys, torch
package, library, data = sys.argv[1:]
torch.ops.load_library(library)
prices, days, expected = torch.load(data)
result = torch._inductor.aoti_load_package(package)(prices, days)
torch.testing.assert_close(result, expected, atol=1e-5, rtol=0)
assert not any(name.startswith("torchcommodity") for name in sys.modules)
"""
FAST_COMPILE = {"aot_inductor.compile_wrapper_opt_level": "O0"}


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("g++") is None or not native_libraries(), reason="needs a compiler and the native library"
)
@pytest.mark.filterwarnings("ignore")  # raised inside torch while Inductor is imported and compiles
def test_aoti_equals_predict_and_bundles_the_operators(
    forecaster: Forecaster, panel: Panel, inputs: Callable[..., tuple[Tensor, Tensor]], tmp_path: Path
) -> None:
    metadata = make_metadata(forecaster, "aoti")
    package = aoti.to_bytes(export_program(forecaster, metadata.min_rows), metadata, FAST_COMPILE)
    path = tmp_path / "small.aoti.pt2"
    path.write_bytes(append_zip_checksum(package))
    artifact = Artifact.load(path)
    assert artifact.metadata.format == "aoti"
    prices, days = inputs("2014-06-02", "2016-12-26")
    expected = forecast.predict(forecaster, panel.between("2014-06-02", "2016-12-26")).log_returns[None]
    torch.testing.assert_close(artifact(prices, days), expected, atol=1e-5, rtol=0)
    records = pt2.read_records(path.read_bytes())
    (tmp_path / "_C.so").write_bytes(next(records[name] for name in records if name.startswith(aoti.LIBRARY)))
    torch.save((prices, days, expected), tmp_path / "data.pt")
    command = [sys.executable, "-c", WITHOUT_PACKAGE, str(path), str(tmp_path / "_C.so"), str(tmp_path / "data.pt")]
    subprocess.run(command, check=True)
