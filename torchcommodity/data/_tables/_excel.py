"""Read a workbook, `.xls` or `.xlsx`, to a `Table`. Imported only for them: it needs an extra."""

import io
import zipfile

from torchcommodity.data._errors import DataError, summarize_names
from torchcommodity.data._grid import Origin
from torchcommodity.data._tables._publisher_sheets import is_eia, is_pink_sheet, read_eia, read_pink_sheet
from torchcommodity.data._tables._sheet import Rows, first_data_row, read_sheet
from torchcommodity.data._tables._table import Table


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
    """The rows of every worksheet by name, from the first row on."""
    try:
        from python_calamine import SheetTypeEnum, load_workbook
    except ImportError as error:
        needs = "an Excel file needs python-calamine: pip install 'torchcommodity[excel]'"
        raise ImportError(f"{origin.label}: {needs}") from error
    _check_size(body, origin, max_bytes)
    try:
        workbook = load_workbook(io.BytesIO(body))
        names = [sheet.name for sheet in workbook.sheets_metadata if sheet.typ == SheetTypeEnum.WorkSheet]
        return {name: workbook.get_sheet_by_name(name).to_python(skip_empty_area=False) for name in names}
    except BaseException as error:  # the library's panics are no subclass of Exception
        if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit)):
            raise
        got = f"one that cannot be read: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
        raise DataError(f"{origin.label}: expected an Excel workbook without a password; got {got}") from None


def _check_size(body: bytes, origin: Origin, max_bytes: int) -> None:
    """A small archive can unpack to any size."""
    if body.startswith(b"PK"):
        size = sum(member.file_size for member in zipfile.ZipFile(io.BytesIO(body)).infolist())
        if size > max_bytes:
            raise DataError(f"{origin.label}: expected at most {max_bytes} bytes unpacked; got {size}")
