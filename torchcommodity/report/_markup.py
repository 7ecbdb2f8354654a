"""HTML elements as functions; every text that did not come from here is escaped."""

from collections.abc import Iterable, Sequence
from html import escape

SHORT = 12  # characters of a cell that is not broken into lines
VOID = frozenset({"br", "hr", "col", "meta"})


class Markup(str):
    """Text that already is HTML and is not escaped again."""

    __slots__ = ()


def element(tag: str, *children: object, **attributes: object) -> Markup:
    """One element; children that are no `Markup` are escaped, `class_` is written `class`, `aria_label` `aria-label`.

    >>> element("p", "1 < 2", class_="note")
    '<p class="note">1 &lt; 2</p>'
    >>> element("p", element("b", "<script>"))
    '<p><b>&lt;script&gt;</b></p>'
    """
    named = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{tag}{named}>" if tag in VOID else f"<{tag}{named}>{join(children)}</{tag}>")


def join(children: Iterable[object]) -> Markup:
    """Children one after another, escaped unless they are `Markup`."""
    return Markup("".join(child if isinstance(child, Markup) else escape(str(child)) for child in children))


def table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    texts: Iterable[int] = (0,),
) -> Markup:
    """A table in a box that scrolls by itself; a row's first cell heads it, columns not in `texts` hold numbers."""
    left = set(texts)

    def side(column: int, cell: object = "") -> str | None:
        return "number" if column not in left else "short" if len(str(cell)) <= SHORT else None

    head = (element("th", name, scope="col", class_=side(i)) for i, name in enumerate(columns))
    body = (
        element(
            "tr",
            element("th", row[0], scope="row", class_=side(0, row[0])),
            *(element("td", cell, class_=side(i, cell)) for i, cell in enumerate(row[1:], start=1)),
        )
        for row in rows
    )
    content = element(
        "table",
        element("caption", element("span", caption)),
        element("thead", element("tr", *head)),
        element("tbody", *body),
    )
    return element("div", content, class_="scroll", tabindex="0", role="region", aria_label=caption)
