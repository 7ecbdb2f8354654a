"""Building blocks of a page's sections, and number formats."""

import math

from torchcommodity.report._markup import Markup, element


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


def details(summary: str, *parts: object) -> Markup:
    """Content that opens on request."""
    return element("details", element("summary", summary), *parts)


def format_percent(share: float) -> str:
    """A share in percent; `none` for NaN."""
    return "none" if math.isnan(share) else f"{100 * share:.1f} %"
