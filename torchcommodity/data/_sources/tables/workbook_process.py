"""Run as a script: read a workbook from standard input, and write its cells, pickled, to standard output.

A workbook of a few kilobytes can make its reader allocate any amount of memory, or abort. In a process of its own, with
a limit on memory, that ends in a message instead of the end of the program.
"""

import io
import pickle
import resource
import sys
from typing import Any


def read_sheets(body: bytes) -> dict[str, list[list[Any]]]:
    """The rows of every worksheet by name, from the first row on."""
    from python_calamine import SheetTypeEnum, load_workbook

    workbook = load_workbook(io.BytesIO(body))
    names = [sheet.name for sheet in workbook.sheets_metadata if sheet.typ == SheetTypeEnum.WorkSheet]
    return {name: workbook.get_sheet_by_name(name).to_python(skip_empty_area=False) for name in names}


if __name__ == "__main__":
    limit = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    pickle.dump(read_sheets(sys.stdin.buffer.read()), sys.stdout.buffer)
