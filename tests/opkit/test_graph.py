"""`opkit.graph`: its nodes and edges, and each of its formats."""

import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from torchcommodity import opkit, ops
from torchcommodity.opkit._graph.layout import layout


@pytest.fixture
def model() -> torch.nn.Sequential:
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))


def test_graph_has_operators_parameters_and_saved_bytes(model: torch.nn.Sequential) -> None:
    x = torch.ones(5, 3)
    graph = opkit.graph(model(x).sum(), names=model)
    leaves = {node.name: node.shape for node in graph.nodes if node.kind == "leaf"}
    assert leaves == {name: tuple(p.shape) for name, p in model.named_parameters()}
    assert [node.name for node in graph.nodes if node.kind == "operator" and node.name != "T"] == [
        "Addmm", "Relu", "Addmm", "Sum",
    ]  # fmt: skip
    assert graph.saved_bytes == 5 * 3 * 4 + 5 * 4 * 4  # input of the first layer, and the result of relu, counted once


def test_graph_edges_lead_to_the_output(model: torch.nn.Sequential) -> None:
    graph = opkit.graph({"loss": model(torch.ones(5, 3)).sum()})
    assert all(a < b for a, b in graph.edges)
    ancestors = {len(graph.nodes) - 1}
    for a, b in sorted(graph.edges, reverse=True):
        ancestors |= {a} if b in ancestors else set()
    assert ancestors == set(range(len(graph.nodes)))


def test_graph_names_operators_of_this_library() -> None:
    prices = torch.rand(20, 2, requires_grad=True)
    names = [node.name for node in opkit.graph(ops.rolling_correlation(prices, 5)).nodes]
    assert "rolling_correlation" in names


def test_graph_saves_nothing_after_the_backward_pass(model: torch.nn.Sequential) -> None:
    loss = model(torch.ones(5, 3)).sum()
    loss.backward()
    assert opkit.graph(loss).saved_bytes == 0


def test_graph_rejects_an_output_without_gradient() -> None:
    with pytest.raises(ValueError, match="graph: output must require a gradient; got Tensor without one"):
        opkit.graph(torch.ones(2))


def test_graph_mermaid_has_two_directions(model: torch.nn.Sequential) -> None:
    graph = opkit.graph(model(torch.ones(5, 3)).sum(), names=model)
    forward, backward = graph.mermaid(), graph.mermaid(backward=True)
    assert forward.count("-->") == backward.count("-.->") == len(graph.edges)
    assert '"0.weight<br/>float32 (4, 3)"' in forward


def test_graph_layout_has_no_overlaps_and_edges_go_down() -> None:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 10, enable_nested_tensor=False)
    graph = opkit.graph(encoder(torch.ones(2, 5, 8)).sum(), names=encoder)
    assert len(graph.nodes) > 500
    result = layout(len(graph.nodes), graph.edges)
    for layer in range(result.height):
        columns = sorted(column for column, number in result.positions if number == layer)
        assert all(b - a > 0.99 for a, b in pairwise(columns))
    assert all(b[1] == a[1] + 1 for path in result.paths for a, b in pairwise(path))
    drawing = ElementTree.fromstring(graph.svg())
    assert len(drawing.findall(".//{*}g")) == len(graph.nodes)


@pytest.mark.parametrize("suffix", [".html", ".svg", ".mmd"])
def test_graph_files_are_self_contained(model: torch.nn.Sequential, tmp_path: Path, suffix: str) -> None:
    text = opkit.graph(model(torch.ones(5, 3)).sum()).save(tmp_path / f"graph{suffix}").read_text()
    assert not re.search(r"""(src|href)=["']?http""", text)
    assert "Addmm" in text


def test_graph_rejects_another_suffix(model: torch.nn.Sequential, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"the suffix must be one of .html, .svg, .mmd; got graph.png"):
        opkit.graph(model(torch.ones(5, 3)).sum()).save(tmp_path / "graph.png")
