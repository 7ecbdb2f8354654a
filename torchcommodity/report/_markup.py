"""HTML elements as functions; all other text is escaped."""

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
