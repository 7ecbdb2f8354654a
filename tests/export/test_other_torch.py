"""Artifacts of another torch: the error says which torch wrote the file, which one reads it, and what to do."""

import json
import re
from pathlib import Path

import pytest
import torch

from torchcommodity.export import Artifact
from torchcommodity.export._checksum import append_zip_checksum
from torchcommodity.export._formats import pt2


def write_unreadable(source: Path, target: Path, writer: str) -> Path:
    """A file that names an operator of a later torch."""
    records = pt2.read_records(source.read_bytes())
    metadata, graph = json.loads(records[pt2.METADATA]), json.loads(records[pt2.GRAPH])
    graph["graph_module"]["graph"]["nodes"][0]["target"] = "torch.ops.aten.of_a_later_version.default"
    records |= {pt2.METADATA: json.dumps(metadata | {"torch": writer}).encode(), pt2.GRAPH: json.dumps(graph).encode()}
    target.write_bytes(append_zip_checksum(pt2.write_records(records)))
    return target


def test_unreadable_artifact_names_the_torch_that_wrote_it(pt2_file: Path, tmp_path: Path) -> None:
    path = write_unreadable(pt2_file, tmp_path / "later.pt2", "2.99.1+cpu")
    reader = torch.__version__
    message = (
        f"Artifact.load: {path} was written by torch 2.99.1+cpu and does not load with torch {reader}; load it with "
        f"torch 2.99, or export the forecaster again with torch {'.'.join(reader.split('.')[:2])}; got "
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        Artifact.load(path)


@pytest.mark.parametrize("writer", [torch.__version__, "2.99; import os", ""])
def test_unreadable_artifact_of_the_same_torch_or_of_none(pt2_file: Path, tmp_path: Path, writer: str) -> None:
    path = write_unreadable(pt2_file, tmp_path / "broken.pt2", writer)
    with pytest.raises(ValueError, match="must be an artifact written by export; got "):
        Artifact.load(path)


def test_artifact_of_another_torch_loads_if_it_can(pt2_file: Path, tmp_path: Path) -> None:
    records = pt2.read_records(pt2_file.read_bytes())
    metadata = json.loads(records[pt2.METADATA]) | {"torch": "2.99.1"}
    path = tmp_path / "other.pt2"
    path.write_bytes(append_zip_checksum(pt2.write_records(records | {pt2.METADATA: json.dumps(metadata).encode()})))
    assert Artifact.load(path).metadata.torch == "2.99.1"
