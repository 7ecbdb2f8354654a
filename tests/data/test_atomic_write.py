"""`write_atomic` and `write_files_atomic`: whole files or none, flushed to disk."""

import os
import stat

import pytest

from torchcommodity import data


def test_write_atomic_replaces_a_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"old")
    assert data.write_atomic(path, b"new") == path
    assert path.read_bytes() == b"new"
    assert [each.name for each in tmp_path.iterdir()] == ["a.csv"]


def test_write_atomic_flushes_file_and_folder(tmp_path, monkeypatch):
    flushed, fsync = [], os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda handle: (flushed.append(stat.S_ISDIR(os.fstat(handle).st_mode)), fsync(handle))
    )
    data.write_atomic(tmp_path / "a.csv", b"1")
    assert flushed == [False, True]


def test_write_files_atomic_keeps_all_old_files_on_an_error(tmp_path, monkeypatch):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_bytes(b"old")
    calls = []

    def fails(handle):
        calls.append(handle)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match=r"expected a folder where a.csv, b.csv can be written; got No space left"):
        data.write_files_atomic(tmp_path, {"a.csv": b"new", "b.csv": b"new"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "b.csv"]
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {b"old"}


def test_write_atomic_names_a_missing_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=r"expected a folder where a\.csv can be written; got Not a directory"):
        data.write_atomic(tmp_path / "file" / "a.csv", b"1")
    with pytest.raises(FileNotFoundError) as error:
        data.write_atomic(tmp_path / "no" / "a.csv", b"1")
    assert (
        str(error.value)
        == f"{tmp_path / 'no'}: expected a folder where a.csv can be written; got No such file or directory"
    )


def test_write_atomic_follows_the_umask(tmp_path):
    before = os.umask(0o022)
    try:
        assert stat.S_IMODE(data.write_atomic(tmp_path / "a.csv", b"1").stat().st_mode) == 0o644
    finally:
        os.umask(before)
