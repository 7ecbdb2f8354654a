"""Tensors and metadata in one safetensors file with a checksum and without code."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

KEY = "torchcommodity"  # the only key of the file's metadata: safetensors would write several in random order
MAX_DIGITS = 20  # of an integer, such as a seed
MAX_TENSORS = 10_000  # of a file that is read: a checksum of each takes time


def tensor_file_bytes(kind: str, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]) -> bytes:
    """Content of a file with tensors and metadata.

    Args:
        kind: name of the file's format, checked by `read_tensor_file`.
        tensors: by name, of any dense dtype that safetensors supports.
        metadata: JSON values by name.

    Raises:
        ValueError: a tensor has a dtype that safetensors does not support.
    """
    # clones: safetensors rejects tensors that share memory
    copies = {name: x.detach().cpu().contiguous().clone() for name, x in tensors.items()}
    header = {"kind": kind, "metadata": metadata, "sha256": _checksum(kind, copies, metadata)}
    try:
        return safetensors.torch.save(copies, {KEY: json.dumps(header)})
    except KeyError:
        dtypes = ", ".join(sorted({str(x.dtype) for x in copies.values()}))
        raise ValueError(f"save: tensors must have dtypes supported by safetensors; got {dtypes}") from None


def read_tensor_file(path: str | Path, kind: str, owner: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the tensors and metadata of a file written by `tensor_file_bytes`, bit for bit.

    Args:
        path: the file.
        kind: expected format.
        owner: class that saves and loads the file, for error messages.

    Raises:
        ValueError: the file is damaged, truncated, or has another format.
        OSError: the file cannot be read.
    """
    return parse_tensor_file(Path(path).read_bytes(), kind, owner, str(path))


def parse_tensor_file(
    content: bytes, kind: str, owner: str, label: str = "content"
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Inverse of `tensor_file_bytes`; see `read_tensor_file`. `label` names the content in messages."""
    try:
        length = int.from_bytes(content[:8], "little")  # of the header, which is JSON
        entries = parse_json(content[8 : 8 + length].decode())
        if len(entries) > MAX_TENSORS:
            raise ValueError(f"expected at most {MAX_TENSORS:,} tensors; got {len(entries):,}")
        tensors = {name: x.clone() for name, x in safetensors.torch.load(content).items()}
        header = parse_json(entries["__metadata__"][KEY])
        file_kind, metadata, sha256 = str(header["kind"]), header["metadata"], header["sha256"]
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{owner}.load: {label} must be a file written by {owner}.save; got another or a damaged file"
        ) from error
    if file_kind != kind:
        name = kind.rpartition(".")[0]
        hint = ", written by another version: create it again" if file_kind.rpartition(".")[0] == name else ""
        raise ValueError(f"{owner}.load: {label} must have format {kind}; got {file_kind!r}{hint}")
    if sha256 != _checksum(kind, tensors, metadata):
        raise ValueError(f"{owner}.load: {label} is damaged (checksum mismatch)")
    return tensors, metadata


def parse_json(text: str) -> Any:
    """Values of JSON text that somebody else may have written: names once, integers of few digits.

    Raises:
        ValueError: other text.
        RecursionError: lists in lists without an end.

    >>> parse_json('{"rows": 1, "rows": 2}')
    Traceback (most recent call last):
    ValueError: expected each name of an object once; got 'rows' twice
    """

    def to_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = Counter(name for name, _ in pairs)
        if repeated := [name for name, count in names.items() if count > 1]:
            raise ValueError(f"expected each name of an object once; got {repeated[0][:80]!r} twice")
        return dict(pairs)

    def to_integer(digits: str) -> int:
        if len(digits) > MAX_DIGITS:
            raise ValueError(f"expected integers of at most {MAX_DIGITS} digits; got one of {len(digits)}")
        return int(digits)

    return json.loads(text, object_pairs_hook=to_object, parse_int=to_integer)


def _checksum(kind: str, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps([kind, metadata], sort_keys=True).encode())
    for name, x in sorted(tensors.items()):
        digest.update(json.dumps([name, str(x.dtype), list(x.shape)]).encode())
        row = x.clone(memory_format=torch.contiguous_format).flatten()  # one element is contiguous with any stride
        digest.update(row.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
