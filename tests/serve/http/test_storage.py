"""Artifacts are found in files, folders and at URLs; what is missing or ambiguous is said in words."""

import sys
from pathlib import Path

import fsspec
import pytest

from torchcommodity.serve.http import local_artifact


def test_folder_with_one_artifact_is_that_artifact(tmp_path: Path) -> None:
    (tmp_path / "model.aoti.pt2").write_bytes(b"model")
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    with local_artifact(tmp_path) as path:
        assert path == tmp_path / "model.aoti.pt2"


@pytest.mark.parametrize(
    ("names", "received"),
    [
        ([], "an empty folder"),
        (["model.safetensors"], "model.safetensors"),
        (["b.onnx", "a.pt2"], "a.pt2, b.onnx"),
    ],
)
def test_folder_without_one_artifact_is_refused(names: list[str], received: str, tmp_path: Path) -> None:
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(ValueError, match=rf"expected one exported model .* in this folder; got {received}$"):
        local_artifact(tmp_path).__enter__()


def test_missing_file_or_folder_is_refused() -> None:
    with pytest.raises(FileNotFoundError, match=r"^/models: expected an exported model .*; there is no such file or"):
        local_artifact("/models").__enter__()


@pytest.mark.parametrize("url", ["memory://models/oil", "memory://models/oil/", "memory://models/oil/wti.pt2"])
def test_artifact_at_a_url_is_copied_and_removed(url: str) -> None:
    fsspec.filesystem("memory").pipe_file("/models/oil/wti.pt2", b"model")
    with local_artifact(url) as path:
        assert (path.name, path.read_bytes()) == ("wti.pt2", b"model")
    assert not path.exists()


def test_url_without_artifact_or_package_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"memory://nothing: expected a readable model; got FileNotFoundError"):
        local_artifact("memory://nothing").__enter__()
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(ImportError, match=r"gs://models: gs:// needs .*: pip install 'torchcommodity\[cloud\]'"):
        local_artifact("gs://models").__enter__()
