"""Files that are written whole or not at all, together."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


def check_folder(folder: Path, names: tuple[str, ...]) -> None:
    """Say before the work, not after it, that its results could not be written.

    Raises:
        ValueError: `folder` is a file, may not be written, or one of `names` in it is a folder.
    """
    present = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not present.is_dir():
        raise ValueError(f"--out: expected a folder; got {folder}, where {present} is a file")
    if not os.access(present, os.W_OK | os.X_OK):
        raise ValueError(f"--out: expected a folder that may be written; got {folder}")
    if taken := [name for name in names if (folder / name).is_dir()]:
        raise ValueError(f"--out: expected to write the file {folder / taken[0]}; got a folder of that name")


def write_together(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write all files beside their places first, then move each into its place.

    Whoever reads finds every file whole, old or new; an error before the first move leaves all the old ones.
    """
    check_folder(folder, tuple(files))
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".torchcommodity-", dir=folder) as staging:
        for name, content in files.items():
            _write(Path(staging) / name, content)
        for name in files:
            os.replace(Path(staging) / name, folder / name)


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
