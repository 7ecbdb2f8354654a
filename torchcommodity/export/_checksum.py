"""The checksum at the end of an artifact: over every byte before it, and in a place that its format allows.

A zip archive ends with a comment, an ONNX file (a protobuf message) with one more field: other programs read both.
"""

import hashlib
import struct
from pathlib import Path

ZIP_END, ZIP_END_SIZE = b"PK\x05\x06", 22
DIGITS = 64
ZIP_MARK = b"torchcommodity sha256 "
# field 14 of ModelProto, metadata_props: an entry of key 1 and value 2, each after its tag and its length
KEY = b"torchcommodity.sha256"
ENTRY = b"\x0a" + bytes([len(KEY)]) + KEY + b"\x12" + bytes([DIGITS])
ONNX_MARK = b"\x72" + bytes([len(ENTRY) + DIGITS]) + ENTRY


def sealed_zip(archive: bytes) -> bytes:
    """The archive with its checksum as comment."""
    end = archive[-ZIP_END_SIZE:]
    assert (end[:4], end[-2:]) == (ZIP_END, b"\0\0"), "a zip archive without comment"
    return _sealed(archive[:-2] + struct.pack("<H", len(ZIP_MARK) + DIGITS), ZIP_MARK)


def sealed_onnx(model: bytes) -> bytes:
    """The model with its checksum as last entry of the metadata."""
    return _sealed(model, ONNX_MARK)


def checked(path: Path) -> tuple[bytes, str]:
    """The bytes of a sealed file and the checksum in it.

    Raises:
        ValueError: the file was not written by `export`, is cut short, or a byte of it has changed.
    """
    raw = path.read_bytes()
    body, digest = raw[:-DIGITS], raw[-DIGITS:]
    if not body.endswith((ZIP_MARK, ONNX_MARK)):
        expected = "expected a whole file that torchcommodity export wrote"
        raise ValueError(f"Artifact.load: {expected}; got {path}, which is cut short, damaged at its end, or foreign")
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise ValueError(f"Artifact.load: {path} is damaged: its contents do not have the checksum written with them")
    return raw, digest.decode()


def _sealed(body: bytes, mark: bytes) -> bytes:
    body += mark
    return body + hashlib.sha256(body).hexdigest().encode()
