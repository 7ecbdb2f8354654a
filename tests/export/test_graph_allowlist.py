"""Allowlist of pt2 graphs: code is rejected even with a valid checksum."""

import json
from pathlib import Path

import pytest

from torchcommodity.export import Artifact
from torchcommodity.export._checksum import append_zip_checksum
from torchcommodity.export._formats import pt2

CODE = "__import__('os').getcwd()"


def with_code(records: dict[str, bytes], location: str) -> dict[str, bytes]:
    graph = json.loads(records[pt2.GRAPH])
    nodes = graph["graph_module"]["graph"]["nodes"]
    if location == "operator":
        nodes[0]["target"] = "torch.hub.load"
    elif location == "file":
        nodes[0]["target"] = "torch.ops.aten.from_file.default"
    elif location == "size":
        sizes = graph["graph_module"]["graph"]["sym_int_values"]
        sizes[next(iter(sizes))]["as_expr"]["expr_str"] = CODE
    elif location == "guard":
        graph["guards_code"] = [CODE]
    elif location == "name":
        graph["graph_module"]["graph"]["inputs"][0]["as_tensor"]["name"] = f"x={CODE}"
    else:
        payloads = json.loads(records[pt2.PAYLOADS[0]])
        next(iter(payloads["config"].values()))["use_pickle"] = True
        return records | {pt2.PAYLOADS[0]: json.dumps(payloads).encode()}
    return records | {pt2.GRAPH: json.dumps(graph).encode()}


@pytest.mark.parametrize("location", ["operator", "file", "size", "guard", "name", "pickle"])
def test_graph_allowlist_rejects_code(pt2_file: Path, tmp_path: Path, location: str) -> None:
    records = with_code(pt2.read_records(pt2_file.read_bytes()), location)
    path = tmp_path / "code.pt2"
    path.write_bytes(append_zip_checksum(pt2.write_records(records)))
    with pytest.raises(ValueError, match=r"content other than (tensor operators|plain tensors)"):
        Artifact.load(path)
