"""Read a workbook, `.xls` or `.xlsx`, to a `Table`. Imported only for them: it needs an extra."""

import io
import pickle
import subprocess
import sys
import zipfile
from importlib.util import find_spec

from torchcommodity.data._core.errors import DataError, summarize_names
from torchcommodity.data._sources.tables import workbook_process
from torchcommodity.data._sources.tables.publisher_sheets import is_eia, is_pink_sheet, read_eia, read_pink_sheet
from torchcommodity.data._sources.tables.sheet import Rows, first_data_row, read_sheet
from torchcommodity.data._sources.tables.table import Origin, Table

MEMORY_FACTOR = 4  # memory of the reading process, over the limit on the file
TIMEOUT = 300.0  # seconds


def read_workbook(body: bytes, name: str, origin: Origin, max_bytes: int) -> Table:
    """The table of the sheet `name`; without a name, of the only sheet with dates.

    The workbooks of EIA, whose sheets with data form one table, and of the World Bank are recognized.

    Raises:
        DataError: a damaged or encrypted workbook, no such sheet, or no name and several sheets with dates.
        ImportError: the extra `excel` is not installed.
    """
    sheets = _open(body, origin, max_bytes)
    if name and name not in sheets:
        got = f"{name!r}; its sheets are {summarize_names(sheets, limit=20)}"
        raise DataError(f"{origin.label}: expected the name of a sheet; got {got}")
    sheets = {name: sheets[name]} if name else sheets
    if eia := {title: rows for title, rows in sheets.items() if is_eia(rows)}:
        return read_eia(eia, origin)
    if pink := [rows for title, rows in sheets.items() if is_pink_sheet(rows) and (name or "Prices" in title)]:
        return read_pink_sheet(pink[0], origin)
    return read_sheet(_choose(sheets, origin), origin)


def _choose(sheets: dict[str, Rows], origin: Origin) -> Rows:
    """The only sheet, or the only one with dates."""
    candidates = sheets if len(sheets) == 1 else {n: rows for n, rows in sheets.items() if first_data_row(rows)}
    if len(candidates) != 1:
        names = summarize_names(candidates or sheets, limit=20)
        hint = f"name one, as in {origin.label}:{next(iter(candidates or sheets), 'SHEET')}"
        words = "several" if candidates else "no dates on any"
        raise DataError(f"{origin.label}: expected one sheet with a table of dates; got {words} of {names} ({hint})")
    return next(iter(candidates.values()))


def _open(body: bytes, origin: Origin, max_bytes: int) -> dict[str, Rows]:
    """The rows of every worksheet by name, read by another process; see `workbook_process`."""
    if find_spec("python_calamine") is None:
        needs = "an Excel file needs python-calamine: pip install 'torchcommodity[excel]'"
        raise ImportError(f"{origin.label}: {needs}", name="python_calamine")
    _check_size(body, origin, max_bytes)
    sheets, reason = _run(body, MEMORY_FACTOR * max_bytes)
    if sheets is None:
        raise DataError(f"{origin.label}: expected an Excel workbook without a password; got {reason[:200]}")
    return sheets


def _run(body: bytes, memory: int) -> tuple[dict[str, Rows] | None, str]:
    """The sheets, or None and the reason why they cannot be read."""
    command = [sys.executable, workbook_process.__file__, str(memory)]
    try:
        process = subprocess.run(command, input=body, capture_output=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return None, f"one that takes more than {TIMEOUT:g} s"
    if process.returncode == 0:
        return pickle.loads(process.stdout), ""
    if process.returncode < 0:  # by a signal
        return None, f"one that takes more than {memory >> 30} GiB of memory, or is damaged"
    lines = process.stderr.decode("utf-8", "replace").strip().splitlines()
    return None, f"one that cannot be read: {lines[-1]}" if lines else "one that cannot be read"


def _check_size(body: bytes, origin: Origin, max_bytes: int) -> None:
    """A small archive can unpack to any size."""
    if body.startswith(b"PK"):
        size = sum(member.file_size for member in zipfile.ZipFile(io.BytesIO(body)).infolist())
        if size > max_bytes:
            raise DataError(f"{origin.label}: expected at most {max_bytes} bytes unpacked; got {size}")
