"""Tables, and the numbers in their cells; wide ones scroll sideways, or show each row as a block on a phone."""

import math
from collections.abc import Iterable, Sequence

from torchcommodity.report._markup import Markup, element, plain_text

SHORT = 12  # characters; a shorter cell is not wrapped


def table(
    caption: str,
    columns: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    text_columns: Iterable[int] = (0,),
    stack: str | None = None,
) -> Markup:
    """A table in a scrollable box; the first cell of a row is its header, columns not in `text_columns` are numbers.

    Args:
        caption: what the table shows.
        columns: headers.
        rows: cells.
        text_columns: numbers of the columns that are not numbers.
        stack: class of a table whose rows are blocks on a phone, each cell with the name of its column.
    """
    body = element("tbody", *table_rows(columns, rows, text_columns))
    return table_box(caption, columns, [body], text_columns=text_columns, stack=stack)


def table_box(
    caption: str,
    columns: Sequence[object],
    bodies: Iterable[Markup],
    *,
    text_columns: Iterable[int] = (0,),
    stack: str | None = None,
) -> Markup:
    """The same of several table bodies."""
    left = set(text_columns)
    head = (element("th", name, scope="col", class_=_alignment(i, left)) for i, name in enumerate(columns))
    content = element(
        "table",
        element("caption", element("span", caption)),
        element("thead", element("tr", *head)),
        *bodies,
        class_=None if stack is None else f"stack {stack}",
    )
    return element("div", content, class_="scroll", tabindex="0", role="region", aria_label=caption)


def table_rows(
    columns: Sequence[object], rows: Iterable[Sequence[object]], text_columns: Iterable[int] = (0,)
) -> list[Markup]:
    """Rows of a table body, every cell with the name of its column."""
    left, labels = set(text_columns), list(map(plain_text, columns))
    return [
        element(
            "tr",
            element("th", row[0], scope="row", class_=_alignment(0, left, row[0])),
            *(
                element("td", cell, class_=_alignment(i, left, cell), data_label=labels[i])
                for i, cell in enumerate(row[1:], start=1)
            ),
        )
        for row in rows
    ]


def _alignment(column: int, left: set[int], cell: object = "") -> str | None:
    if column not in left:
        return "number"
    return "short" if len(plain_text(cell)) <= SHORT else None


def format_price(value: float) -> str:
    """Two decimals from 10 on, four significant digits below.

    >>> format_price(1234.5), format_price(0.01234567)
    ('1,234.50', '0.01235')
    """
    return f"{value:,.2f}" if abs(value) >= 10 else f"{value:.4g}"


def format_number(value: float, decimals: int) -> str:
    """A price with a fixed number of decimals; `none` for NaN.

    >>> format_number(-37.63, 1), format_number(1234.5, 2)
    ('−37.6', '1,234.50')
    """
    return "none" if math.isnan(value) else f"{value:,.{decimals}f}".replace("-", "\u2212")


def format_change(share: float) -> str:
    """A relative change in percent; `none` for NaN.

    >>> format_change(0.0123), format_change(-0.2)
    ('+1.2 %', '−20.0 %')
    """
    return "none" if math.isnan(share) else f"{100 * share:+.1f} %".replace("-", "\u2212")


def format_percent(share: float) -> str:
    """A share in percent; `none` for NaN."""
    return "none" if math.isnan(share) else f"{100 * share:.1f} %"
