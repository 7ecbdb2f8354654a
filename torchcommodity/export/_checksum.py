"""Checksum at the end of an artifact, over all bytes before it.

It is stored in the comment at the end of a zip archive, or in an additional metadata field of an ONNX file (a protobuf
message), so that other programs can still read the file.
"""

import hashlib
import struct

ZIP_END, ZIP_END_SIZE = b"PK\x05\x06", 22
DIGEST_SIZE = 64  # hexadecimal sha256
ZIP_MARKER = b"torchcommodity sha256 "
# field 14 of ModelProto, metadata_props: an entry of key (field 1) and value (field 2), each after its tag and length
KEY = b"torchcommodity.sha256"
ENTRY = b"\x0a" + bytes([len(KEY)]) + KEY + b"\x12" + bytes([DIGEST_SIZE])
ONNX_MARKER = b"\x72" + bytes([len(ENTRY) + DIGEST_SIZE]) + ENTRY


def append_zip_checksum(archive: bytes) -> bytes:
    """Append the checksum to a zip archive as its comment."""
    end = archive[-ZIP_END_SIZE:]
    assert (end[:4], end[-2:]) == (ZIP_END, b"\0\0"), "expected a zip archive without comment"
    return _append(archive[:-2] + struct.pack("<H", len(ZIP_MARKER) + DIGEST_SIZE), ZIP_MARKER)


def append_onnx_checksum(model: bytes) -> bytes:
    """Append the checksum to an ONNX model as its last metadata entry."""
    return _append(model, ONNX_MARKER)


def verify(content: bytes, label: str) -> str:
    """Verify the checksum of an artifact, and return it.

    Args:
        content: bytes of the file.
        label: name of the file, for messages.

    Raises:
        ValueError: the file was not written by `export`, is truncated, or a byte has changed.
    """
    body, digest = content[:-DIGEST_SIZE], content[-DIGEST_SIZE:]
    if not body.endswith((ZIP_MARKER, ONNX_MARKER)):
        raise ValueError(
            f"Artifact.load: expected a complete file written by torchcommodity export; got {label}, which is "
            "truncated, damaged at its end, or another kind of file"
        )
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise ValueError(f"Artifact.load: {label} is damaged (checksum mismatch)")
    return digest.decode()


def _append(body: bytes, marker: bytes) -> bytes:
    body += marker
    return body + hashlib.sha256(body).hexdigest().encode()
