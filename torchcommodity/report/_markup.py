"""HTML elements and blocks of a page as functions; all other text is escaped."""

import re
from collections.abc import Iterable
from html import escape, unescape

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


def plain_text(content: object) -> str:
    """Text of an element without its tags.

    >>> plain_text(element("b", "1 < 2"))
    '1 < 2'
    """
    return unescape(re.sub("<[^>]*>", "", content)) if isinstance(content, Markup) else str(content)


def section(name: str, heading: str, *parts: object) -> Markup:
    """A section with its heading, reachable as `#name`."""
    heading_id = f"{name}-heading"
    return element("section", element("h2", heading, id=heading_id), *parts, id=name, aria_labelledby=heading_id)


def paragraph(*parts: object, class_: str | None = None) -> Markup:
    """A paragraph; text is escaped."""
    return element("p", *parts, class_=class_)


def figure(name: str, description: str, caption: str, *, square: bool = False, decimals: int | None = None) -> Markup:
    """Placeholder of the chart `name`, with a text alternative; `decimals` of its prices, for the range on a day."""
    box = element(
        "div",
        element("p", description),
        id=f"chart-{name}",
        class_="chart square" if square else "chart",
        role="group",  # not img: it has the buttons of the chart
        aria_label=description,
        data_decimals=decimals,
    )
    return element("figure", box, element("figcaption", caption))


def code(text: str) -> Markup:
    """Monospaced text."""
    return element("code", text)


def details(summary: str, *parts: object) -> Markup:
    """Content that opens on request."""
    return element("details", element("summary", summary), *parts)
