"""`opkit.graph`: its nodes and edges, and each of its formats."""

import re
import sys
import xml.etree.ElementTree as ElementTree
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

import torch_opkit as opkit
from torch_opkit._graph import png
from torch_opkit._graph.layout import layout


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


def test_graph_of_several_results_names_them_and_shows_leaves_once() -> None:
    x, other = torch.ones(3, requires_grad=True), torch.ones(2, requires_grad=True)
    y = x.sinh()
    (grad,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    graph = opkit.graph((grad, x, y, other), names={"grad": grad, "x": x, "y": y})
    assert [node.name for node in graph.nodes if node.kind != "operator"] == ["x", "grad", "y", "output"]
    assert graph.saved_bytes == opkit.graph((grad, y)).saved_bytes


def _half(x: torch.Tensor) -> torch.Tensor:
    return x / 2


def test_graph_names_operators_with_a_record() -> None:
    half = opkit.Op("test_graph::half", reference=_half, backward=lambda grad: grad / 2)
    names = [node.name for node in opkit.graph(half(torch.rand(20, 2, requires_grad=True))).nodes]
    assert "half" in names


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
    with pytest.raises(ValueError, match=r"the suffix must be one of .html, .svg, .png, .mmd; got graph.pdf"):
        opkit.graph(model(torch.ones(5, 3)).sum()).save(tmp_path / "graph.pdf")


def read_png(data: bytes) -> Any:
    image = pytest.importorskip("PIL.Image")
    return image.open(BytesIO(data)).convert("RGB")


def test_graph_png_is_the_drawing_of_the_svg(model: torch.nn.Sequential, tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    graph = opkit.graph(model(torch.ones(5, 3)).sum(), names=model)
    image, svg = read_png(graph.save(tmp_path / "graph.png").read_bytes()), ElementTree.fromstring(graph.svg())
    assert image.size == (2 * int(svg.attrib["width"]), 2 * int(svg.attrib["height"]))
    fills = {"leaf": "#f7f1e1", "operator": "#eef3f8", "output": "#e3f2e6"}
    for group in svg.findall(".//{*}g"):
        rect = group.find("{*}rect")
        assert rect is not None
        x, y, width, height = (2 * float(rect.attrib[key]) for key in ("x", "y", "width", "height"))
        pixel = image.getpixel((round(x + 24), round(y + height / 2)))  # left of the text
        assert "#{:02x}{:02x}{:02x}".format(*pixel) == fills[group.attrib["class"]]
        text = image.crop((round(x + 24), round(y + 6), round(x + width - 24), round(y + height - 6)))
        assert min(low for low, _ in text.getextrema()) < 80  # dark glyphs


@pytest.mark.parametrize("backward", [False, True])
def test_graph_png_has_arrows_in_both_directions(model: torch.nn.Sequential, backward: bool) -> None:
    graph = opkit.graph(model(torch.ones(5, 3)).sum(), names=model)
    edges = {(123, 138, 153), (168, 80, 60)}
    counts = read_png(graph.png(backward=backward, scale=1)).getcolors(1 << 20)
    assert {color for _, color in counts} & edges == {(168, 80, 60) if backward else (123, 138, 153)}


def test_graph_png_of_a_large_graph_is_reduced_or_refused(
    model: torch.nn.Sequential, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = opkit.graph(model(torch.ones(5, 3)).sum(), names=model)
    full = read_png(graph.png()).size
    monkeypatch.setattr(png, "MAX_PIXELS", full[0] * full[1] // 4)
    assert read_png(graph.png()).size == (full[0] // 2, full[1] // 2)
    with pytest.raises(
        ValueError, match=r"at most .* pixels; got a drawing of .* at scale=2; pass scale=1.0, or save .svg"
    ):
        graph.png(scale=2)
    monkeypatch.setattr(png, "MAX_PIXELS", full[0] * full[1] // 20)
    with pytest.raises(ValueError, match=r"at scale=None; pass scale=0.44, or save .svg or .html"):
        graph.png()
    assert read_png(graph.png(scale=0.44)).size[0] < full[0] // 4
    with pytest.raises(ValueError, match=r"scale must be > 0; got 0"):
        graph.png(scale=0)


def test_graph_png_without_pillow_names_the_extra(model: torch.nn.Sequential, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"graph.png needs Pillow: pip install 'torch-opkit\[graph\]'"):
        opkit.graph(model(torch.ones(5, 3)).sum()).png()
