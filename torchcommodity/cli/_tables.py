"""Write tables to files; the ending of the name selects the format."""

import io
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def check_file(path: Path | None) -> None:
    """Reject an output file that cannot be written, before the work that fills it.

    Raises:
        ValueError: the path is a folder, or its folder cannot be written.
    """
    if path is not None:
        from torchcommodity.report import check_output_folder

        check_output_folder(path.parent, (path.name,))


def write_table(frame: "pd.DataFrame", path: Path) -> None:
    """Write a table atomically, as CSV, Parquet or JSON (one object per row) by the ending of `path`."""
    from torchcommodity.data import write_atomic

    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, _encode(frame, path.suffix.lower()))


def _encode(frame: "pd.DataFrame", suffix: str) -> bytes:
    if suffix == ".parquet":
        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False)
        return buffer.getvalue()
    if suffix == ".json":
        text: str = frame.to_json(orient="records", date_format="iso", double_precision=15, indent=1)
        return f"{text}\n".encode()
    from torchcommodity.data import frame_to_csv

    return frame_to_csv(frame).encode()
