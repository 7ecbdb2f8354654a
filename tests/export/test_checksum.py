"""Checksum of an artifact: every damaged byte is detected."""

from pathlib import Path

import pytest

from torchcommodity.export import Artifact
from torchcommodity.forecast import Forecaster


def write(folder: Path, content: bytes) -> Path:
    path = folder / "damaged.pt2"
    path.write_bytes(content)
    return path


def test_checksum_detects_one_changed_byte_anywhere(pt2_file: Path, tmp_path: Path) -> None:
    original = pt2_file.read_bytes()
    for offset in [*range(0, len(original), len(original) // 97), *range(len(original) - 100, len(original))]:
        content = bytearray(original)
        content[offset] ^= 1 << offset % 8
        with pytest.raises(ValueError, match=r"Artifact.load: .*damaged"):
            Artifact.load(write(tmp_path, bytes(content)))


@pytest.mark.parametrize("stop", [0, 1, 100, 5000, -1, -65, -200])
def test_checksum_detects_truncated_file(pt2_file: Path, tmp_path: Path, stop: int) -> None:
    with pytest.raises(ValueError, match="truncated"):
        Artifact.load(write(tmp_path, pt2_file.read_bytes()[:stop]))


def test_checksum_rejects_file_of_another_kind(forecaster: Forecaster, tmp_path: Path) -> None:
    forecaster.save(tmp_path / "forecaster.safetensors")
    with pytest.raises(ValueError, match="expected a complete file written by torchcommodity export"):
        Artifact.load(tmp_path / "forecaster.safetensors")
