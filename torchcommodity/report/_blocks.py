"""What the sections of the page are made of."""

from torchcommodity.report._markup import Markup, element


def section(name: str, heading: str, *parts: object) -> Markup:
    """A part of the page under its heading, which `#name` reaches."""
    head = f"{name}-heading"
    return element("section", element("h2", heading, id=head), *parts, id=name, aria_labelledby=head)


def paragraph(*parts: object, class_: str | None = None) -> Markup:
    """Text, escaped."""
    return element("p", *parts, class_=class_)


def figure(name: str, words: str, caption: str, *, square: bool = False) -> Markup:
    """A place for the chart `name`, for which its words stand where it cannot be seen."""
    kind = "chart square" if square else "chart"
    box = element("div", element("p", words), id=f"chart-{name}", class_=kind, role="img", aria_label=words)
    return element("figure", box, element("figcaption", caption))


def code(text: str) -> Markup:
    """Text of fixed width."""
    return element("code", text)


def price(value: float) -> str:
    """Two decimals, or four significant digits where that says nothing.

    >>> price(1234.5), price(0.01234567)
    ('1,234.50', '0.01235')
    """
    return f"{value:,.2f}" if abs(value) >= 10 else f"{value:.4g}"


def percent(share: float | None) -> str:
    """A share in percent; `none` where there is none."""
    return "none" if share is None else f"{100 * share:.1f} %"
