"""CSV text that a spreadsheet opens without running anything: symbols and units come from other people's files."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def quote_spreadsheet_cell(text: str) -> str:
    """Prefix an apostrophe to a text that a spreadsheet would run as a formula: one that begins with = + - @ tab or CR.

    Source: https://owasp.org/www-community/attacks/CSV_Injection

    >>> quote_spreadsheet_cell("=HYPERLINK(A1)"), quote_spreadsheet_cell("WTI")
    ("'=HYPERLINK(A1)", 'WTI')
    """
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def frame_to_csv(frame: "pd.DataFrame", *, index: bool = False, index_label: str | None = None) -> str:
    """CSV of a DataFrame, lines ending in LF, with every text cell, column name and label through
    `quote_spreadsheet_cell`; numbers and dates stay as they are.

    >>> import pandas as pd
    >>> frame_to_csv(pd.DataFrame({"symbol": ["WTI", "=1+1"], "price": [-37.63, 2.0]}))
    "symbol,price\\nWTI,-37.63\\n'=1+1,2.0\\n"
    """
    quoted = frame.copy()
    for place, kind in enumerate(frame.dtypes):
        if kind.kind not in "biufcM":
            quoted.isetitem(place, frame.iloc[:, place].map(_quoted))
    quoted.columns = frame.columns.map(_quoted)
    if index:
        quoted.index = frame.index.map(_quoted)
    return str(quoted.to_csv(index=index, index_label=index_label, lineterminator="\n"))


def _quoted(value: Any) -> Any:
    if isinstance(value, tuple):  # a label of several levels
        return tuple(map(_quoted, value))
    return quote_spreadsheet_cell(value) if isinstance(value, str) else value
