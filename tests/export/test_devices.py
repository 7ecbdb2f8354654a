"""Devices of artifacts: the graph of a file moves as a whole, other formats say where they run."""

import re
from pathlib import Path

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from torch_opkit.arguments import operation
from torchcommodity.export import Artifact, RawPriceForecaster
from torchcommodity.export._compatibility import check_compiled_for, check_format, move
from torchcommodity.export._export_program import trace
from torchcommodity.forecast import Forecaster

CUDA = torch.device("cuda", 0)


@pytest.mark.slow
@pytest.mark.export
def test_graph_on_another_device_has_no_tensor_of_the_cpu(forecaster: Forecaster) -> None:
    """Fake tensors have a device and no memory: an operator that sees two devices raises an error, as on a GPU."""
    graph = RawPriceForecaster(forecaster)
    program = trace(graph, 300)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode, torch.no_grad():
        for tensors in (program._state_dict, program._constants):
            tensors.update({name: mode.from_tensor(x) for name, x in tensors.items()})
        program._example_inputs = None
        inputs = [mode.from_tensor(x).to(CUDA) for x in graph.sample_inputs(2, 301)]
        quantiles = move(program, CUDA).module()(*inputs)
    assert quantiles.device == CUDA
    assert quantiles.shape[::2] == (2, len(forecaster.symbols))


def test_formats_say_on_which_device_they_run() -> None:
    check_format("pt2", CUDA)
    message = "export: device must be cpu for format 'onnx'; use 'pt2'; got cuda:0"
    with pytest.raises(ValueError, match=re.escape(message)), operation("export"):
        check_format("onnx", CUDA)
    with pytest.raises(ValueError, match=r"device must have float64, in which an artifact takes prices; .* got mps"):
        check_format("pt2", torch.device("mps"))
    with pytest.raises(ValueError, match="device must be cuda, for which the file was compiled; got cpu"):
        check_compiled_for("cuda", torch.device("cpu"))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_artifact_load_rejects_an_unavailable_device(tmp_path: Path) -> None:
    message = "Artifact.load: device must be available on this machine, such as cpu or auto; got cuda"
    with pytest.raises(ValueError, match=message):
        Artifact.load(tmp_path / "not read.pt2", device="cuda")
