"""The format `pt2`: the graph of `torch.export` and its weights in one archive, without pickle."""

import io
import json
import re
import zipfile
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.export.pt2_archive import PT2ArchiveWriter

from torchcommodity.export import _graph_allowlist as harmless
from torchcommodity.export._metadata import Metadata

GRAPH, EXAMPLE, ABOUT = "models/model.json", "data/sample_inputs/model.pt", "extra/about.json"
PAYLOADS = ("data/weights/model_weights_config.json", "data/constants/model_constants_config.json")
TENSOR = re.compile(r"data/weights/weight_\d+|data/constants/tensor_\d+")
PLAIN = {GRAPH, EXAMPLE, ABOUT, *PAYLOADS, "archive_format", "archive_version", "byteorder", "version"}
PLAIN |= {".data/version", ".data/serialization_id", ".format_version", ".storage_alignment"}


def to_bytes(program: torch.export.ExportedProgram, about: Metadata) -> bytes:
    """An archive that `torch.export.load` reads too."""
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    records = read_records(buffer.getvalue())
    graph = harmless.without_traces(json.loads(records[GRAPH]))
    records |= {GRAPH: json.dumps(graph).encode(), EXAMPLE: b"", ABOUT: about.json().encode()}
    _check(records)
    return packed(records)


def from_records(records: dict[str, bytes]) -> Callable[[Tensor, Tensor], Tensor]:
    """The forecaster of an archive; a ValueError where it holds more than tensors and a graph of operators."""
    _check(records)
    program = torch.export.load(io.BytesIO(packed(records)))  # what was checked, not what another reader may find
    return program.module()


def read_records(archive: bytes) -> dict[str, bytes]:
    """The files of an archive by their names inside its one folder."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return {name.partition("/")[2]: opened.read(name) for name in opened.namelist()}


def _check(records: dict[str, bytes]) -> None:
    unknown = [name for name in records if name not in PLAIN and not TENSOR.fullmatch(name)]
    if unknown or records[EXAMPLE]:
        raise ValueError(f"weights and a graph alone; it holds {', '.join(unknown) or 'pickled inputs'}")
    for name in PAYLOADS:
        payloads: dict[str, Any] = json.loads(records[name])["config"]
        if any(payload["use_pickle"] is not False for payload in payloads.values()):
            raise ValueError("plain tensors alone; it holds pickled ones")
        if not all(TENSOR.fullmatch(f"{name.rpartition('/')[0]}/{p['path_name']}") for p in payloads.values()):
            raise ValueError("plain tensors alone; it holds other objects")
    harmless.check(json.loads(records[GRAPH]))


def packed(records: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with PT2ArchiveWriter(buffer) as writer:
        for name, content in records.items():
            if not name.startswith(".") and name not in ("version", "byteorder"):  # the writer adds its own
                writer.write_bytes(name, content)
    return buffer.getvalue()
