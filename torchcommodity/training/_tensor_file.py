"""The file of anything fitted: a safetensors file whose metadata are JSON and a checksum; nothing in it is code."""

import hashlib
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

DTYPES: dict[str, tuple[torch.dtype, np.dtype[Any]]] = {
    "F32": (torch.float32, np.dtype("<f4")),
    "F64": (torch.float64, np.dtype("<f8")),
    "I64": (torch.int64, np.dtype("<i8")),
    "I8": (torch.int8, np.dtype("i1")),
    "BF16": (torch.bfloat16, np.dtype("<i2")),  # numpy has none: its bits
}
CODES = {dtype: code for code, (dtype, _) in DTYPES.items()}


def tensor_file_bytes(kind: str, state: Mapping[str, Tensor], about: Mapping[str, Any]) -> bytes:
    """Tensors, and facts that JSON can hold, as one file of the format `kind`."""
    body, header = b"", {}
    for name, x in state.items():
        plain = x.detach().cpu().contiguous()
        code = CODES.get(plain.dtype)
        if code is None:
            raise ValueError(f"save: {name} must be of {', '.join(map(str, CODES))}; got {plain.dtype}")
        bits = plain.view(torch.int16) if plain.dtype == torch.bfloat16 else plain
        raw = bits.numpy().astype(DTYPES[code][1]).tobytes()
        header[name] = {"dtype": code, "shape": list(plain.shape), "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    told = json.dumps(about)
    meta = {"format": kind, "about": told, "sha256": _checksum(header, told, body)}
    head = json.dumps({"__metadata__": meta, **header}).encode()
    return struct.pack("<Q", len(head)) + head + body


def read_tensor_file(path: str | Path, kind: str, owner: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and facts of a file of `to_bytes`, the same bits.

    Args:
        path: the file.
        kind: its format.
        owner: the class that saves and loads it, for the messages.

    Raises:
        ValueError: the file is damaged, cut short, or of another format.
    """
    raw = Path(path).read_bytes()
    try:
        (length,) = struct.unpack_from("<Q", raw)
        header = json.loads(raw[8 : 8 + length])
        meta = header.pop("__metadata__")
        found = meta["format"]
    except (struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{owner}.load: {path} must be a file of {owner}.save; it cannot be read as one") from error
    if found != kind:
        raise ValueError(f"{owner}.load: {path} must be of format {kind}; got {found!r}")
    body = raw[8 + length :]
    if meta.get("sha256") != _checksum(header, meta.get("about", ""), body):
        raise ValueError(f"{owner}.load: {path} is damaged: its contents do not have the checksum written with them")
    return {name: _tensor(entry, body) for name, entry in header.items()}, json.loads(meta["about"])


def _checksum(header: dict[str, Any], about: str, body: bytes) -> str:
    return hashlib.sha256(json.dumps(header, sort_keys=True).encode() + about.encode() + body).hexdigest()


def _tensor(entry: dict[str, Any], body: bytes) -> Tensor:
    first, last = entry["data_offsets"]
    dtype, stored = DTYPES[entry["dtype"]]
    values = np.frombuffer(body[first:last], dtype=stored).astype(stored.newbyteorder("="))
    found = torch.from_numpy(values).reshape(entry["shape"])
    return found.view(dtype) if dtype == torch.bfloat16 else found
