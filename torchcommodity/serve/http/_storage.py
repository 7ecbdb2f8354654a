"""Artifacts in files, folders and object stores, such as the folder that Vertex AI names in AIP_STORAGE_URI."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

SUFFIXES = (".pt2", ".onnx")  # .aoti.pt2 is one of them
PACKAGES = {"gs": "torchcommodity[cloud]", "s3": "torchcommodity[cloud]", "az": "adlfs"}  # else an extra of fsspec


@contextmanager
def local_artifact(address: str | os.PathLike[str]) -> Iterator[Path]:
    """Local path of an artifact.

    Args:
        address: a file; a folder that contains one artifact; or the URL of either, such as `gs://BUCKET/FOLDER`. An
            artifact at a URL is copied to a temporary file, which is removed at the end.

    Raises:
        ValueError: the folder has no artifact or several, or the URL cannot be read.
        FileNotFoundError: there is no such file or folder.
        ImportError: fsspec, or its package for this kind of URL, is not installed.

    >>> with TemporaryDirectory() as folder:
    ...     Path(folder, "model.pt2").touch()
    ...     with local_artifact(folder) as path:  # or "gs://models/oil"
    ...         path.name
    'model.pt2'
    """
    name = os.fspath(address)
    if "://" not in name:
        if not os.path.exists(name):
            expected = "expected an exported model (.pt2 or .onnx), or a folder that contains one"
            raise FileNotFoundError(f"{name}: {expected}; there is no such file or folder")
        yield Path(name, _only_artifact(name, os.listdir(name))) if os.path.isdir(name) else Path(name)
        return
    with TemporaryDirectory(prefix="torchcommodity-") as folder:
        yield _copy(name, Path(folder))


def _only_artifact(folder: str, names: list[str]) -> str:
    artifacts = sorted(name for name in names if name.lower().endswith(SUFFIXES))
    if len(artifacts) == 1:
        return artifacts[0]
    received = ", ".join((artifacts or sorted(names) or ["an empty folder"])[:5])
    raise ValueError(f"{folder}: expected one exported model (.pt2 or .onnx) in this folder; got {received}")


def _copy(url: str, folder: Path) -> Path:
    """Copy the artifact at a URL, whole."""
    try:
        files, source = _open(url)
        if not files.isfile(source):
            names = [entry["name"].rstrip("/").rpartition("/")[2] for entry in files.ls(source, detail=True)]
            source = f"{source.rstrip('/')}/{_only_artifact(url, names)}"
        path = folder / source.rpartition("/")[2]
        files.get_file(source, str(path))
        expected, received = files.info(source)["size"], path.stat().st_size
    except (ImportError, ValueError):
        raise
    except Exception as error:  # the classes of storage libraries have nothing in common
        reason = str(error).partition("\n")[0]
        raise ValueError(f"{url}: expected a readable model; got {type(error).__name__}: {reason}") from None
    if expected not in (None, received):
        raise ValueError(f"{url}: expected {expected} bytes; got {received}; start the server again")
    return path


def _open(url: str) -> tuple[Any, str]:
    scheme = url.partition("://")[0]
    try:
        from fsspec.core import url_to_fs

        files, path = url_to_fs(url)
    except ImportError as error:
        package = PACKAGES.get(scheme, f"fsspec[{scheme}]")
        raise ImportError(f"{url}: {scheme}:// needs another package ({error}): pip install '{package}'") from None
    return files, path
