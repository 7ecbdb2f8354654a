"""Tensor file: round trip of every dtype, deterministic bytes, damage detected."""

import struct
from pathlib import Path

import pytest
import safetensors.torch
import torch

from torchcommodity.training import read_tensor_file, tensor_file_bytes

TENSORS = {
    "float64": torch.tensor([[0.1, float("nan")], [float("inf"), -0.0]], dtype=torch.float64),
    "float32": torch.arange(6, dtype=torch.float32).reshape(2, 3).T,  # not contiguous
    "float16": torch.tensor([1.5, -2.0]).half(),
    "bfloat16": torch.tensor([1.5, -2.0, 3.0]).bfloat16(),
    "int64": torch.tensor(7),
    "int8": torch.tensor([-128, 127], dtype=torch.int8),
    "empty": torch.zeros(0, 3),
}
METADATA = {"symbols": ("WTI", "BRENT"), "nested": {"rate": 3e-3, "text": "µ"}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "tensors.safetensors"
    path.write_bytes(tensor_file_bytes("kind.1", TENSORS, METADATA))
    return path


def test_tensor_file_round_trips_every_dtype_bit_for_bit(path: Path) -> None:
    tensors, metadata = read_tensor_file(path, "kind.1", "Owner")
    assert metadata == {"symbols": ["WTI", "BRENT"], "nested": METADATA["nested"]}
    assert tensors.keys() == TENSORS.keys()
    for name, x in TENSORS.items():
        assert (tensors[name].dtype, tensors[name].shape) == (x.dtype, x.shape)
        raw = (y.reshape(-1).view(torch.uint8) for y in (tensors[name], x.contiguous()))
        assert torch.equal(*raw), name


def test_tensor_file_is_plain_safetensors_with_deterministic_bytes(path: Path) -> None:
    plain = safetensors.torch.load(path.read_bytes())
    assert torch.equal(plain["float32"], TENSORS["float32"])
    assert all(tensor_file_bytes("kind.1", TENSORS, METADATA) == path.read_bytes() for _ in range(5))


def test_tensor_file_takes_tensors_that_share_memory(tmp_path: Path) -> None:
    x = torch.arange(4.0)
    (tmp_path / "shared").write_bytes(tensor_file_bytes("kind.1", {"x": x, "same": x, "part": x[:2]}, {}))
    tensors, _ = read_tensor_file(tmp_path / "shared", "kind.1", "Owner")
    assert torch.equal(tensors["same"], x)
    assert torch.equal(tensors["part"], x[:2])


def test_tensor_file_takes_one_element_of_any_stride(tmp_path: Path) -> None:
    x = torch.arange(6.0).reshape(2, 3)[:1, ::2][:, 1:]  # contiguous, with strides (3, 2)
    (tmp_path / "one").write_bytes(tensor_file_bytes("kind.1", {"x": x}, {}))
    tensors, _ = read_tensor_file(tmp_path / "one", "kind.1", "Owner")
    assert torch.equal(tensors["x"], x)


def test_tensor_file_detects_every_changed_byte(path: Path) -> None:
    original = path.read_bytes()
    for offset in range(len(original)):
        content = bytearray(original)
        content[offset] ^= 1 << offset % 8
        path.write_bytes(content)
        try:
            tensors, metadata = read_tensor_file(path, "kind.1", "Owner")
        except ValueError:
            continue
        # padding, or an equal JSON text such as another case of an escape
        assert metadata["symbols"] == ["WTI", "BRENT"]
        assert torch.equal(tensors["int8"], TENSORS["int8"])
        assert chr(original[offset]).isspace() or chr(content[offset]).isspace(), offset


@pytest.mark.parametrize("content", [b"", b"date,price\n" * 9, struct.pack("<Q", 2**40), struct.pack("<Q", 2) + b"{}"])
def test_tensor_file_rejects_other_files(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"Owner\.load: .* must be a file written by Owner\.save"):
        read_tensor_file(path, "kind.1", "Owner")


@pytest.mark.parametrize("more", ['"int8": {}', '"__metadata__": {}', ", ".join(f'"{n}": 0' for n in range(10**4))])
def test_tensor_file_rejects_names_that_repeat_and_too_many(path: Path, more: str) -> None:
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = content[8 : 8 + length].rstrip()[:-1] + f", {more}}}".encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + content[8 + length :])
    with pytest.raises(ValueError, match=r"must be a file written by Owner\.save") as error:
        read_tensor_file(path, "kind.1", "Owner")
    assert "once" in str(error.value.__cause__) or "at most 10,000 tensors" in str(error.value.__cause__)


@pytest.mark.parametrize("stop", [-1, -7, 100, 9])
def test_tensor_file_rejects_truncated_file(path: Path, stop: int) -> None:
    path.write_bytes(path.read_bytes()[:stop])
    with pytest.raises(ValueError, match=r"must be a file written by Owner\.save; got another or a damaged file"):
        read_tensor_file(path, "kind.1", "Owner")


def test_tensor_file_rejects_other_kind_and_missing_file(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must have format kind\.2; got 'kind\.1'"):
        read_tensor_file(path, "kind.2", "Owner")
    with pytest.raises(FileNotFoundError):
        read_tensor_file(tmp_path / "absent", "kind.1", "Owner")


def test_tensor_file_rejects_unsupported_dtype() -> None:
    with pytest.raises(ValueError, match=r"dtypes supported by safetensors; got torch\.complex128"):
        tensor_file_bytes("kind.1", {"x": torch.zeros(2, dtype=torch.complex128)}, {})
