"""HTML elements as functions; all other text is escaped."""

from collections.abc import Iterable, Sequence
from html import escape

SHORT = 12  # characters; a shorter cell is not wrapped
VOID_TAGS = frozenset({"br", "hr", "col", "meta"})


class Markup(str):
    """HTML, not escaped again."""

    __slots__ = ()


def element(tag: str, *children: object, **attributes: object) -> Markup:
    """One element; children other than `Markup` are escaped, `class_` becomes `class`, `aria_label` `aria-label`.

    >>> element("p", "1 < 2", class_="note")
    '<p class="note">1 &lt; 2</p>'
    >>> element("p", element("b", "<script>"))
    '<p><b>&lt;script&gt;</b></p>'
    """
    pairs = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{tag}{pairs}>" if tag in VOID_TAGS else f"<{tag}{pairs}>{join(children)}</{tag}>")


def join(children: Iterable[object]) -> Markup:
    """Concatenate children; all but `Markup` are escaped."""
    return Markup("".join(child if isinstance(child, Markup) else escape(str(child)) for child in children))


def table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    text_columns: Iterable[int] = (0,),
) -> Markup:
    """A table in a scrollable box; the first cell of a row is its header, columns not in `text_columns` are numbers."""
    left = set(text_columns)

    def alignment(column: int, cell: object = "") -> str | None:
        return "number" if column not in left else "short" if len(str(cell)) <= SHORT else None

    head = (element("th", name, scope="col", class_=alignment(i)) for i, name in enumerate(columns))
    body = (
        element(
            "tr",
            element("th", row[0], scope="row", class_=alignment(0, row[0])),
            *(element("td", cell, class_=alignment(i, cell)) for i, cell in enumerate(row[1:], start=1)),
        )
        for row in rows
    )
    content = element(
        "table",
        element("caption", element("span", caption)),
        element("thead", element("tr", *head)),
        element("tbody", *body),
    )
    return scroll_box(content, caption)


def scroll_box(content: Markup, label: str) -> Markup:
    """A box that scrolls sideways, also by keyboard."""
    return element("div", content, class_="scroll", tabindex="0", role="region", aria_label=label)
