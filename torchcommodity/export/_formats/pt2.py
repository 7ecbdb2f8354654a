"""Format `pt2`: the graph of `torch.export` and its weights in one zip archive, without pickle."""

import io
import json
import logging
import re
import sys
import zipfile
from collections.abc import Callable
from operator import attrgetter
from typing import Any, cast
from unittest import mock

import torch
from torch import Tensor, fx, nn

from torchcommodity.export._checksum import append_zip_checksum
from torchcommodity.export._compatibility import CPU, move
from torchcommodity.export._graph_allowlist import check_graph, replace_in_place, strip_debug_info
from torchcommodity.export._graph_cost import check_cost
from torchcommodity.export._metadata import Metadata
from torchcommodity.forecast import MAX_ROWS, check_weights

GRAPH, EXAMPLE, METADATA = "models/model.json", "data/sample_inputs/model.pt", "extra/metadata.json"
PAYLOADS = ("data/weights/model_weights_config.json", "data/constants/model_constants_config.json")
TENSOR = re.compile(r"data/weights/weight_\d+|data/constants/tensor_\d+")
KNOWN = {GRAPH, EXAMPLE, METADATA, *PAYLOADS, "archive_format", "archive_version", "byteorder", "version"}
KNOWN |= {".data/version", ".data/serialization_id", ".format_version", ".storage_alignment"}


def check_available() -> None:
    """Do nothing: torch is all that this format needs."""


def to_bytes(program: torch.export.ExportedProgram, metadata: Metadata, _device: torch.device = CPU) -> bytes:
    """Archive of a graph, the same for all devices; `torch.export.load` can read it too."""
    buffer = io.BytesIO()
    torch.export.save(replace_in_place(program), buffer)
    records = read_records(buffer.getvalue())
    graph = strip_debug_info(json.loads(records[GRAPH]))
    records |= {GRAPH: json.dumps(graph).encode(), EXAMPLE: b"", METADATA: metadata.to_json().encode()}
    _check(records)
    return append_zip_checksum(write_records(records))


def from_records(
    records: dict[str, bytes], metadata: Metadata, device: torch.device = CPU
) -> Callable[[Tensor, Tensor], Tensor]:
    """The forecaster of an archive; ValueError if it holds more than tensors and operators, or costs too much."""
    _check(records)
    # rewritten from the checked records: torch's zip reader might see other content in the original file
    with mock.patch.object(logging.getLogger("torch.export"), "disabled", True):  # logs a traceback for each error
        program = torch.export.load(io.BytesIO(write_records(records)))
    check_weights(program.state_dict)
    forward = program.module()
    for rows in (metadata.min_rows + 20, MAX_ROWS):
        check_cost(forward, len(metadata.columns), rows)
    return simplify(forward if device.type == "cpu" else move(program, device).module())


@torch.no_grad()
def simplify(module: nn.Module) -> fx.GraphModule:
    """Replace what a graph computes from its weights alone by the results, and drop what changes nothing.

    Each operation costs time in each call.
    """
    module = cast(fx.GraphModule, module)
    known: dict[fx.Node, Any] = {}
    for node in module.graph.nodes:
        if node.op == "get_attr":
            known[node] = attrgetter(node.target)(module)
        elif node.op == "call_function" and known.keys() >= set(node.all_input_nodes):
            args, kwargs = fx.node.map_arg((node.args, node.kwargs), known.__getitem__)
            known[node] = node.target(*args, **kwargs)
    for node, value in known.items():
        if node.op == "get_attr" or not isinstance(value, Tensor) or known.keys() >= node.users.keys():
            continue
        name = f"_constant_of_{node.name}"
        module.register_buffer(name, value)
        with module.graph.inserting_before(node):
            node.replace_all_uses_with(module.graph.get_attr(name), delete_user_cb=lambda user: user not in known)
    for node in module.graph.nodes:
        if node.target is torch.ops.aten.slice.Tensor and node.args[2:] == (0, sys.maxsize):  # the whole axis
            node.replace_all_uses_with(node.args[0])
    # assertions of dtypes, too, the only ones that the allowlist has: `Artifact` checks the inputs
    module.graph.eliminate_dead_code(lambda node: node.op != "call_function" and node.is_impure())
    module.recompile()
    return module


def read_records(archive: bytes) -> dict[str, bytes]:
    """Files of an archive by their names inside its top-level folder.

    Raises:
        ValueError: a file is compressed, two have one name or share bytes: their sizes are known before they are read.
    """
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        members = opened.infolist()
        names = {member.filename.partition("/")[2] for member in members}
        is_compressed = any(member.compress_type != zipfile.ZIP_STORED for member in members)
        size = sum(member.file_size for member in members)
        if is_compressed or len(names) < len(members) or size > len(archive):
            rule = "an archive of files that are not compressed, each with a name and bytes of its own"
            raise ValueError(f"content other than {rule}: {len(members)} files, {size:,} bytes in {len(archive):,}")
        return {member.filename.partition("/")[2]: opened.read(member) for member in members}


def write_records(records: dict[str, bytes]) -> bytes:
    """Inverse of `read_records`."""
    from torch.export.pt2_archive import PT2ArchiveWriter  # imports torch._dynamo, two seconds

    buffer = io.BytesIO()
    with PT2ArchiveWriter(buffer) as writer:
        for name, content in records.items():
            if not name.startswith(".") and name not in ("version", "byteorder"):  # added by the writer
                writer.write_bytes(name, content)
    return buffer.getvalue()


def _check(records: dict[str, bytes]) -> None:
    unknown = [name for name in records if name not in KNOWN and not TENSOR.fullmatch(name)]
    if unknown or records[EXAMPLE]:
        raise ValueError(f"content other than weights and a graph: {', '.join(unknown) or 'pickled inputs'}")
    for name in PAYLOADS:
        payloads: dict[str, Any] = json.loads(records[name])["config"]
        if any(payload["use_pickle"] is not False for payload in payloads.values()):
            raise ValueError("content other than plain tensors: pickled tensors")
        if not all(TENSOR.fullmatch(f"{name.rpartition('/')[0]}/{p['path_name']}") for p in payloads.values()):
            raise ValueError("content other than plain tensors: objects")
    check_graph(json.loads(records[GRAPH]))
