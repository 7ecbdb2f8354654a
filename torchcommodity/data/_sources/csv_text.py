"""CSV text that is safe to open in a spreadsheet: symbols and units come from untrusted files."""

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

# the start of a cell: of the text, of a line in it, and behind a separator of a spreadsheet of another language
_FORMULA = re.compile(r"(^|[;\t\r\n])( *[=+\-@\uff1d\uff0b\uff0d\uff20](?!\Z))|^([\t\r])")


def quote_spreadsheet_cell(text: str) -> str:
    r"""Prefix an apostrophe to text that a spreadsheet would run as a formula.

    Such text begins with `=`, `+`, `-`, `@` (also in their full-width forms), a tab or a carriage return; or one of the
    signs follows a semicolon, a tab or a line break, where a spreadsheet may begin a new cell.

    Source: https://owasp.org/www-community/attacks/CSV_Injection

    >>> quote_spreadsheet_cell("=HYPERLINK(A1)"), quote_spreadsheet_cell("a;=1+1"), quote_spreadsheet_cell("CL=F")
    ("'=HYPERLINK(A1)", "a;'=1+1", 'CL=F')
    """
    return _FORMULA.sub(lambda match: f"{match[1] or ''}'{match[2] or match[3]}", text)


def frame_to_csv(frame: "pd.DataFrame", *, index: bool = False, index_label: str | None = None) -> str:
    """Convert a DataFrame to CSV that is safe to open in a spreadsheet; lines end in LF.

    Text cells, column names and index labels pass through `quote_spreadsheet_cell`; numbers and dates are unchanged.

    Args:
        frame: the table.
        index: write the index too.
        index_label: header of the index column.

    >>> import pandas as pd
    >>> frame_to_csv(pd.DataFrame({"symbol": ["WTI", "=1+1"], "price": [-37.63, 2.0]}))
    "symbol,price\\nWTI,-37.63\\n'=1+1,2.0\\n"
    """
    quoted = frame.copy()
    for column, dtype in enumerate(frame.dtypes):
        if dtype.kind not in "biufcM":
            quoted.isetitem(column, frame.iloc[:, column].map(_quote))
    quoted.columns = frame.columns.map(_quote)
    if index:
        quoted.index = frame.index.map(_quote)
    return str(quoted.to_csv(index=index, index_label=index_label, lineterminator="\n"))


def _quote(value: Any) -> Any:
    if isinstance(value, tuple):  # a label of a MultiIndex
        return tuple(map(_quote, value))
    return quote_spreadsheet_cell(value) if isinstance(value, str) else value
