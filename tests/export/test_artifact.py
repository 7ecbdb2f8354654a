"""Artifact: same bits as predict, dynamic shapes, input checks."""

import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from torchcommodity import forecast
from torchcommodity.data import Panel
from torchcommodity.export import Artifact
from torchcommodity.forecast import Forecaster
from torchcommodity.training import one_thread

Inputs = Callable[..., tuple[Tensor, Tensor]]


@pytest.mark.parametrize("last", ["2010-04-21", "2012-02-29", "2016-12-26", "2016-12-30"])
def test_artifact_equals_predict_bit_for_bit(
    artifact: Artifact, forecaster: Forecaster, panel: Panel, inputs: Inputs, last: str
) -> None:
    expected = forecast.predict(forecaster, panel.between(None, last)).log_returns
    with one_thread():
        assert torch.equal(artifact(*inputs(None, last))[0], expected)
    assert expected.isfinite().all()


def test_artifact_takes_any_batch_size_and_strides(artifact: Artifact, inputs: Inputs) -> None:
    prices, days = (torch.cat([x[:, k : k + 200] for k in (0, 7, 500)]) for x in inputs())
    batch = artifact(prices.transpose(1, 2).contiguous().transpose(1, 2), days)
    for k in range(3):
        single = artifact(prices[k : k + 1], days[k : k + 1])
        torch.testing.assert_close(batch[k : k + 1], single, rtol=1e-6, atol=0)


def test_artifact_computes_nothing_from_its_weights_alone_and_nothing_without_effect(artifact: Artifact) -> None:
    depends = set()  # on the inputs
    for node in artifact.forward.graph.nodes:
        assert node.users or node.op in ("placeholder", "output"), node.format_node()
        assert "slice" not in node.name or node.args[2:] != (0, sys.maxsize), node.format_node()
        if node.op == "placeholder" or depends.intersection(node.all_input_nodes):
            depends.add(node)
        assert node in depends or node.op == "get_attr", node.format_node()


@pytest.mark.parametrize("source", ["pt2", "forecaster"])  # of onnx in test_onnx.py, which exports one
def test_artifact_pickled_copy_has_the_same_bits(
    source: str, forecaster: Forecaster, pt2_file: Path, inputs: Inputs
) -> None:
    artifact = Artifact.from_forecaster(forecaster) if source == "forecaster" else Artifact.load(pt2_file)
    copy = pickle.loads(pickle.dumps(artifact))
    assert copy.metadata == artifact.metadata
    assert torch.equal(copy(*inputs()), artifact(*inputs()))


def test_artifact_rejects_wrong_inputs(artifact: Artifact, inputs: Inputs) -> None:
    prices, days = (x[:, :60] for x in inputs())
    infinite = prices.clone()
    infinite[0, 3, 1] = torch.inf
    for arguments, message in (
        ((prices.float(), days), "prices must be float64"),
        ((prices[..., :1], days), r"prices must be \(B, T, N\) with N=2"),
        ((prices, days[:, 1:]), r"days \(B, T\)"),
        ((prices[:, :30], days[:, :30]), "prices must have at least 31 rows; got 30"),
        ((infinite, days), "prices must be finite or NaN"),
        ((prices, days.flip(1)), "days must increase"),
        ((prices, days + 40000), "days must lie between 1970-01-01 and 2060-12-31; got 2119"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            artifact(*arguments)
