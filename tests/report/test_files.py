"""Files of a report are written together or not at all."""

from pathlib import Path

import pytest

from torchcommodity.report import check_output_folder, write_files


def test_write_files_keeps_the_old_files_on_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path / "out", {"a": b"old", "b": b"old"})

    def disk_full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", disk_full)
    with pytest.raises(OSError, match="No space"):
        write_files(tmp_path / "out", {"a": b"new", "b": b"new"})
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == {"a": b"old", "b": b"old"}


def test_write_files_rejects_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    with pytest.raises(ValueError, match="got a folder of that name"):
        write_files(tmp_path, {"a": b"", "b": b""})
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_check_output_folder_rejects_a_file_in_the_path(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "deep"):
        with pytest.raises(ValueError, match="--out: must be a folder; got"):
            check_output_folder(folder, ("a",))
