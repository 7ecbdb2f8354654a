"""Artifacts with a right checksum that somebody else has made: data only, checked before it is used."""

import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from torchcommodity.export import Artifact
from torchcommodity.export._checksum import append_zip_checksum
from torchcommodity.export._export_program import sample_inputs
from torchcommodity.export._formats import onnx, pt2
from torchcommodity.export._graph_allowlist import OPERATORS, replace_in_place, strip_debug_info
from torchcommodity.forecast import Forecaster
from torchcommodity.training import parse_tensor_file, tensor_file_bytes

Records = dict[str, bytes]


@pytest.fixture
def records(pt2_file: Path) -> Records:
    return pt2.read_records(pt2_file.read_bytes())


def load(records: Records) -> Artifact:
    return Artifact._from_bytes(append_zip_checksum(pt2.write_records(records)))


def test_operators_neither_write_nor_return_uninitialized_memory() -> None:
    names = [name.split(".")[3] for name in OPERATORS if name.startswith("torch.ops")]
    assert not [name for name in names if name.endswith("_") and not name.endswith("__")]
    assert not [name for name in names if name.startswith("_") and not name.startswith("__") and "assert" not in name]
    assert not [
        name for name in OPERATORS if name.rsplit(".", 1)[1] in ("out", "out_") or "unsafe" in name or "empty" in name
    ]


@pytest.mark.parametrize(
    "target",
    [
        "copy_.default", "mul_.Tensor", "mul_.Scalar", "add.out", "scatter_.src", "empty.memory_format",
        "empty_like.default", "new_empty.default", "segment_reduce.default", "save.default", "from_file.default",
        "as_strided.default", "set_.source_Tensor", "resize_.default", "_unsafe_index.Tensor", "_unsafe_view.default",
    ],
)  # fmt: skip
def test_operator_that_no_export_has_is_rejected(records: Records, target: str) -> None:
    graph = json.loads(records[pt2.GRAPH])
    graph["graph_module"]["graph"]["nodes"][3]["target"] = f"torch.ops.aten.{target}"
    with pytest.raises(ValueError, match=r"content other than tensor operators: target 'torch\.ops\.aten"):
        load(records | {pt2.GRAPH: json.dumps(graph).encode()})


def test_graph_that_changes_a_buffer_or_asks_for_much_memory_is_rejected(records: Records) -> None:
    graph = json.loads(records[pt2.GRAPH])
    assert all(node["target"] in OPERATORS for node in graph["graph_module"]["graph"]["nodes"])
    outputs = graph["graph_module"]["signature"]["output_specs"]
    outputs.insert(0, {"buffer_mutation": {"arg": {"name": "where"}, "buffer_name": "model.har.mix"}})
    with pytest.raises(ValueError, match="outputs 'buffer_mutation, user_output'"):
        load(records | {pt2.GRAPH: json.dumps(graph).encode()})
    graph = json.loads(records[pt2.GRAPH])
    node = next(x for x in graph["graph_module"]["graph"]["nodes"] if ".new_full." in x["target"])
    node["inputs"][1]["arg"] = {"as_ints": [100_000, 1_000]}
    with pytest.raises(ValueError, match=r"a graph with sizes up to 10000000; got one of 1e\+08"):
        load(records | {pt2.GRAPH: json.dumps(graph).encode()})
    graph = json.loads(records[pt2.GRAPH])
    sizes = graph["graph_module"]["graph"]["sym_int_values"]
    sizes[next(iter(sizes))]["as_expr"]["expr_str"] = "1" * 900 + "!"  # no time for backtracking
    with pytest.raises(ValueError, match="content other than tensor operators: expr_str"):
        load(records | {pt2.GRAPH: json.dumps(graph).encode()})


def test_archive_larger_than_its_file_is_rejected_before_it_is_read(pt2_file: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data/weights/weight_0", bytes(10**7))
    with pytest.raises(ValueError, match="must be an artifact written by export; got content other than an archive of"):
        Artifact._from_bytes(append_zip_checksum(buffer.getvalue()))


GRAPHS: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "usual": (lambda x: x.mean(), ""),
    "sizes multiplied": (lambda x: x.new_zeros(x.shape[1] * 10**6 * 10**3).sum(), "one of 5e+10 of aten.new_zeros"),
    "outer product": (lambda x: (torch.arange(10**6)[:, None] + torch.arange(10**6)).sum(), "one of 1e+12 of aten.add"),
    "doubled": (lambda x: torch.cat([torch.cat([x.mT @ x] * 1000)] * 10**4).sum(), "one of 4e+07 of aten.cat"),
    "matrix products": (lambda x: (y := torch.ones(3000, 3000)) @ y @ y @ y, "at most 1e+11 numbers to compute"),
    "matrix exponential": (lambda x: torch.linalg.matrix_exp(torch.ones(3000, 3000)), "at most 1e+11 numbers"),
    "padding": (lambda x: nn.functional.conv1d(torch.ones(1, 1, 8), torch.ones(1, 1, 2), padding=10**9), "one of 2e"),
    "dropout": (lambda x: torch.dropout(x, 0.5, True), "not in training: no random numbers; got aten.bernoulli"),
    "normalization": (
        lambda x: nn.functional.batch_norm(x.mT, torch.zeros(2).double(), torch.ones(2).double(), training=True),
        "not in training",
    ),
}


class Graph(nn.Module):
    """Quantiles of any prices that `fn` of them does not change."""

    def __init__(self, fn: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.fn = fn

    def forward(self, prices: Tensor, days: Tensor) -> Tensor:
        none = days[:, -1].reshape(-1, 1, 1, 1) * 0 + self.fn(prices).sum() * 0
        return torch.tensor([-0.1, 0.0, 0.1], dtype=torch.double).expand(2, 2, 3) + none


@pytest.mark.parametrize("name", GRAPHS)
def test_graph_that_costs_much_or_is_in_training_is_rejected_before_it_runs(records: Records, name: str) -> None:
    fn, reason = GRAPHS[name]
    dynamic = {0: torch.export.Dim("B", min=1), 1: torch.export.Dim("T", min=31)}
    inputs = sample_inputs(2, 2, 32)
    with torch.no_grad():
        program = torch.export.export(Graph(fn), inputs, dynamic_shapes=(dynamic, dynamic))
    buffer = io.BytesIO()
    torch.export.save(replace_in_place(program), buffer)
    own = pt2.read_records(buffer.getvalue())
    graph = json.dumps(strip_debug_info(json.loads(own[pt2.GRAPH]))).encode()
    own |= {pt2.GRAPH: graph, pt2.EXAMPLE: b"", pt2.METADATA: records[pt2.METADATA]}
    if reason:
        with pytest.raises(
            ValueError, match=rf"must be an artifact written by export; got a graph .*{re.escape(reason)}"
        ):
            load(own)
    else:
        assert load(own)(*inputs).shape == (2, 2, 2, 3)


def test_weights_beyond_their_storage_are_rejected_without_a_traceback(
    records: Records, capfd: pytest.CaptureFixture[str]
) -> None:
    payloads = json.loads(records[pt2.PAYLOADS[0]])
    meta = next(iter(payloads["config"].values()))["tensor_meta"]
    meta |= {"sizes": [{"as_int": 2**30}, {"as_int": 4}], "strides": [{"as_int": 0}, {"as_int": 1}]}
    with pytest.raises(ValueError, match=r"must be an artifact written by export; got .+"):
        load(records | {pt2.PAYLOADS[0]: json.dumps(payloads).encode()})
    assert not capfd.readouterr().err


LIES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "levels fall": lambda m: {"levels": m["levels"][::-1]},
    "NaN level": lambda m: {"levels": [0.1, float("nan"), 0.9]},
    "level of one": lambda m: {"levels": [0.1, 0.5, 1.0]},
    "levels as text": lambda m: {"levels": ["0.1", "0.5", "0.9"]},
    "too few levels": lambda m: {"levels": m["levels"][1:]},
    "negative horizon": lambda m: {"horizons": [-5, 5]},
    "fractional horizon": lambda m: {"horizons": [2, 5.5]},
    "boolean horizon": lambda m: {"horizons": [True, 5]},
    "endless horizon": lambda m: {"horizons": [2, 10**12]},
    "too many horizons": lambda m: {"horizons": [2, 5, 9]},
    "duplicate symbols": lambda m: {"symbols": ["WTI", "WTI"]},
    "too few symbols": lambda m: {"symbols": ["WTI"]},
    "swapped symbols": lambda m: {"symbols": m["symbols"][::-1]},
    "symbols as text": lambda m: {"symbols": "WTI"},
    "control character": lambda m: {"symbols": ["WTI", "BRE\x1bNT"]},
    "units": lambda m: {"units": ["$"]},
    "unknown contract": lambda m: {"contracts": ["QQQQ", None]},
    "unknown frequency": lambda m: {"frequency": "hourly"},
    "weekly with contracts": lambda m: {"frequency": "weekly"},
    "warm-up of none": lambda m: {"warmup": 0},
    "warm-up of less": lambda m: {"warmup": 1},
    "warm-up of text": lambda m: {"warmup": "30"},
    "endless warm-up": lambda m: {"warmup": 10**9},
    "calendar": lambda m: {"calendar": ["1900-01-01", "2100-01-01"]},
    "calendar of one day": lambda m: {"calendar": ["1970-01-01"]},
    "trained later": lambda m: {"trained_through": "2999-01-01"},
    "trained never": lambda m: {"trained_through": "yesterday"},
    "unknown model": lambda m: {"model": "har-stm"},
    "note": lambda m: {"note": 3},
    "provenance": lambda m: {"provenance": [{"symbol": 1}, {}]},
    "one source": lambda m: {"provenance": m["provenance"][:1]},
    "statistics": lambda m: {"training_prices": [x | {"lowest": -1.0} for x in m["training_prices"]]},
    "statistics of one": lambda m: {"training_prices": m["training_prices"][:1]},
    "references": lambda m: {"references": ["WTI"]},
    "one more reference": lambda m: {"references": ["GASOLINE"]},
    "other location": lambda m: {"location": m["location"] | {"state": {}}},
    "ranges": lambda m: {"ranges": ["COAL"]},
    "curves": lambda m: {"curve_of": ["CL"]},
    "format": lambda m: {"format": "zip"},
    "unit with a control character": lambda m: {"units": ["$/bbl", "\x1b[31m"]},
    "publisher of two lines": lambda m: {"provenance": [x | {"publisher": "EIA\n"} for x in m["provenance"]]},
    "no unit of the source": lambda m: {"provenance": [{"symbol": "WTI"}, {"symbol": "BRENT"}]},
    "note of two lines": lambda m: {"note": "fitted\x1b[2J\n"},
    "version without end": lambda m: {"version": "1" * 10**6},
    "date of a week": lambda m: {"trained_through": "2016-W52-5"},
    "integer without end": lambda m: {"training_prices": [x | {"highest": 10**400} for x in m["training_prices"]]},
    "unknown field": lambda m: {"code": "import os"},
}


@pytest.mark.parametrize("lie", LIES)
def test_metadata_that_no_forecaster_has_are_rejected_in_one_line(records: Records, lie: str) -> None:
    metadata = json.loads(records[pt2.METADATA])
    with pytest.raises(
        ValueError, match=r"^Artifact\.load: content must be an artifact written by export; got ."
    ) as error:
        load(records | {pt2.METADATA: json.dumps(metadata | LIES[lie](metadata)).encode()})
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


def test_metadata_that_say_a_field_twice_are_rejected(records: Records) -> None:
    text = records[pt2.METADATA].replace(b'"format"', b'"note": "another", "format"', 1)
    with pytest.raises(ValueError, match=r"got expected each name of an object once; got 'note' twice"):
        load(records | {pt2.METADATA: text})


@pytest.mark.parametrize("text", ["[]", "{}", "null", "3", "[" * 100_000, "\ud800", "{", ""])
def test_metadata_that_are_no_object_are_rejected(records: Records, text: str) -> None:
    with pytest.raises(ValueError, match=r"^Artifact\.load: content must be an artifact written by export; got .+"):
        load(records | {pt2.METADATA: text.encode("utf-8", "surrogatepass")})


def test_onnx_model_with_data_in_another_file_is_rejected() -> None:
    helper = pytest.importorskip("onnx.helper")
    proto = pytest.importorskip("onnx").TensorProto
    tensor = helper.make_tensor("w", proto.DOUBLE, [2], [1.0, 2.0])
    node = helper.make_node("Constant", [], ["y"], value=tensor)
    graph = helper.make_graph([node], "g", [], [], [tensor])
    model = helper.make_model(helper.make_graph([helper.make_node("If", ["c"], ["y"], then_branch=graph)], "m", [], []))
    onnx.check_model(model.SerializeToString())
    inner = model.graph.node[0].attribute[0].g
    for weights in (inner.initializer[0], inner.node[0].attribute[0].t):
        weights.external_data.add(key="location", value="prices.csv")
        with pytest.raises(ValueError, match="weights in another file"):
            onnx.check_model(model.SerializeToString())
        weights.ClearField("external_data")
        weights.data_location = proto.EXTERNAL
        with pytest.raises(ValueError, match="weights in another file"):
            onnx.check_model(model.SerializeToString())
        weights.ClearField("data_location")
    for name in ("RandomNormal", "Loop"):
        inner.node[0].op_type = name
        with pytest.raises(ValueError, match=name):
            onnx.check_model(model.SerializeToString())


Weights = Callable[[dict[str, Any], dict[str, Any]], object]
WEIGHTS: dict[str, Weights] = {
    "NaN": lambda w, m: w["har.mix"].fill_(float("nan")),
    "negative mix": lambda w, m: w["har.mix"].mul_(-1),
    "falling quantiles": lambda w, m: w["har.z"].mul_(-1),
    "negative variance": lambda w, m: w["har.long_run"].fill_(-1),
    "shrink": lambda w, m: w["har.shrink"].fill_(3),
    "shape": lambda w, m: w.update({"har.z": w["har.z"][:1]}),
    "dtype": lambda w, m: w.update({"har.z": w["har.z"].long()}),
    "one weight of half precision": lambda w, m: w.update(
        {name: w[name].half() for name in [x for x in w if not x.startswith("har.")][:1]}
    ),
    "missing": lambda w, m: w.pop("har.z"),
    "more": lambda w, m: w.update({"har.zz": w["har.z"]}),
    "duplicate symbols": lambda w, m: m.update(symbols=["WTI", "WTI"]),
    "one symbol": lambda w, m: m.update(symbols=["WTI"]),
    "contract": lambda w, m: m.update(contracts=["QQQQ", None]),
    "levels": lambda w, m: m["model"]["config"]["har"].update(levels=[0.9, 0.5, 0.1]),
    "pairs": lambda w, m: w["har.location.pairs"].add_(5),
    "pairs of one price": lambda w, m: w["har.location.pairs"].zero_(),
    "pairs that repeat": lambda w, m: w.update(
        {
            f"har.location.{x}": w[f"har.location.{x}"].repeat_interleave(2, -2 if x == "pairs" else -1)
            for x in ("pairs", "coefficients", "rows")
        }
    ),
    "rows of pairs": lambda w, m: w["har.location.rows"].fill_(-1),
    "number of eight bits": lambda w, m: w.update({"har.z": w["har.z"].to(torch.float8_e4m3fn)}),
    "endless warm-up": lambda w, m: m["model"]["config"]["har"].update(warmup=10**12),
    "endless half-life": lambda w, m: m["model"]["config"]["har"].update(halflives=[8, 10**9]),
    "endless horizon": lambda w, m: m["model"]["config"]["har"].update(horizons=[2, 10**9]),
    "infinite floor": lambda w, m: m["model"]["config"]["har"].update(floor=float("inf")),
    "reference among the symbols": lambda w, m: m["model"]["config"]["har"].update(references=["WTI"]),
    "reference with markup": lambda w, m: m["model"]["config"]["har"].update(references=["<b>"]),
    "unit with a control character": lambda w, m: m["sources"][0].update(unit="\x1b[31m"),
    "publisher with a control character": lambda w, m: m["sources"][0].update(publisher="\x1b[2J"),
    "formula of two lines": lambda w, m: m["sources"][0].update(series="spread A-B (A\n, B)"),
    "note of two lines": lambda w, m: m["record"].update(note="fitted\n\x07"),
    "settings without end": lambda w, m: m["record"].update(settings="x=" + "[" * 100_000),
    "date of a week": lambda w, m: m["record"]["prices"][0].update(date="2016-W52-5"),
    "endless network": lambda w, m: m["model"]["config"].update(hidden=10**6),
    "dates": lambda w, m: m["record"].update(first="2999-01-01"),
    "record": lambda w, m: m["record"].update(rows="many"),
    "no record": lambda w, m: m.pop("record"),
    "no model": lambda w, m: m.update(model=[]),
}


@pytest.mark.parametrize("lie", WEIGHTS)
def test_forecaster_file_that_no_fit_writes_is_rejected_in_one_line(forecaster: Forecaster, lie: str) -> None:
    kind = "torchcommodity.forecaster.5"
    weights, metadata = parse_tensor_file(forecaster.to_bytes(), kind, "Forecaster")
    WEIGHTS[lie](weights, metadata)
    with pytest.raises(ValueError, match=r"^Forecaster\.load: content must be a file written by .*; got .") as error:
        Forecaster._from_bytes(tensor_file_bytes(kind, weights, metadata))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "header", ["[" * 100_000, '{"kind": 3, "metadata": {}, "sha256": ""}', '{"seed": ' + "1" * 5000]
)
def test_header_that_no_save_writes_is_rejected_in_one_line(header: str) -> None:
    content = safetensors.torch.save({"x": torch.zeros(1)}, {"torchcommodity": header})
    with pytest.raises(
        ValueError, match=r"^Forecaster\.load: content must (be a file written by|have format)"
    ) as error:
        Forecaster._from_bytes(content)
    assert "\n" not in str(error.value)
