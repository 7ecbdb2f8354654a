"""Write the files of a report together."""

import os
from collections.abc import Mapping
from pathlib import Path

from torchcommodity.data import write_files_atomic


def check_output_folder(folder: Path, names: tuple[str, ...]) -> None:
    """Check that the files can be written, before any computation.

    Raises:
        ValueError: `folder` is a file, is not writable, or one of `names` in it is a folder.
    """
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        where = "which is a file" if existing == folder else f"but {existing} is a file"
        raise ValueError(f"--out: must be a folder; got {folder}, {where}")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise ValueError(f"--out: must be a writable folder; got {folder}")
    if folders := [name for name in names if (folder / name).is_dir()]:
        raise ValueError(f"--out: {folder / folders[0]} must be a file; got a folder of that name")


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write all files, or none if one of them cannot be written.

    Readers see old or new files, never partial ones: see `data.write_files_atomic`.
    """
    check_output_folder(folder, tuple(files))
    folder.mkdir(parents=True, exist_ok=True)
    write_files_atomic(folder, files)
