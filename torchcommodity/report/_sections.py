"""Head, data and reproduction: what a reader needs around the numbers."""

from collections.abc import Sequence

from torchcommodity.data import CONTRACTS, Finding, Panel
from torchcommodity.report._blocks import code, paragraph, section
from torchcommodity.report._contents import Contents, Run
from torchcommodity.report._markup import Markup, element, join, table

PLACES = {
    "forecast": "Forecast",
    "walk-forward": "Walk-forward test",
    "correlation": "Correlation",
    "data": "Data",
    "reproduce": "Reproduce",
}
CLAIMS = (
    "It says how uncertain prices are: how wide the range of plausible prices is, and how that width follows the "
    "volatility of the market.",
    "It says almost nothing about direction: the median stays near the last price, for past prices tell little of it.",
    "It knows past prices, and what is told of contracts and curves: no inventories, weather, news or positions. A "
    "front-month series jumps when its contract rolls, though nobody earns that jump; the bands contain it, and are "
    "moved by what is known of it ahead.",
    "Its bands held about as often as the test below shows, in the past that was tested. That is no promise for the "
    "next market, and none of it is investment advice.",
)
RULE = (
    "A price that is missing, zero or negative has no log-return: the next return spans the gap. No price is altered, "
    "filled in or dropped."
)
CARD = {
    "publisher": "Publisher",
    "series": "Series",
    "unit": "Unit",
    "location": "Address or file",
    "license": "License",
    "retrieved": "Retrieved",
    "sha256": "sha256",
}


def title(contents: Contents) -> str:
    """`Price forecast: WTI, VIX`."""
    symbols: Sequence[str] = contents.forecast.symbols
    return f"Price forecast: {', '.join(symbols[:6])}{f' and {len(symbols) - 6} more' if len(symbols) > 6 else ''}"


def header(contents: Contents) -> Markup:
    """Title, span of the data, when it was made, where to find what, what the forecast is and is not."""
    dates, run = contents.panel.dates, contents.run
    made = f"{run.made[:16].replace('T', ' ')} UTC"
    links = (element("li", element("a", name, href=f"#{place}")) for place, name in PLACES.items())
    return join(
        [
            element("h1", title(contents)),
            paragraph(f"Prices from {dates[0]} to {dates[-1]}, {len(dates):,} rows. Made {made}.", class_="lead"),
            element("nav", element("ul", *links), aria_label="Sections"),
            element(
                "div",
                element("h2", "What this forecast is, and what it is not"),
                element("ul", *(element("li", sentence) for sentence in CLAIMS)),
                class_="note",
            ),
        ]
    )


def data(panel: Panel, findings: Sequence[Finding], run: Run) -> Markup:
    """Everything doubtful that was found, with what was done about it, and where every column comes from."""
    cards = (element("div", element("h3", source["symbol"]), _card(source)) for source in panel.sources())
    asked = f"Asked from {run.source}. sha256 of the numbers, dates, symbols, contracts and curve used: "
    return section(
        "data",
        "Data",
        paragraph(asked, code(run.data_sha256)),
        paragraph(RULE),
        paragraph(calendars(panel)),
        _findings(findings),
        element("div", *cards, class_="columns"),
    )


def calendars(panel: Panel) -> str:
    """Which columns are futures with a roll calendar, and which are taken for spot prices because none is known."""
    pairs = list(zip(panel.symbols, panel.contracts))
    rolled = [f"{symbol} ({CONTRACTS[code].name}, {CONTRACTS[code].exchange})" for symbol, code in pairs if code]
    spot = ", ".join(symbol for symbol, code in pairs if not code)
    curve = "a curve of nearby contracts" if panel.curve is not None else "no curve of nearby contracts"
    futures = f"Front-month futures with a roll calendar: {', '.join(rolled)}; {curve}." if rolled else ""
    unknown = f"No futures calendar is known for {spot}: taken for spot prices, without rolls." if spot else ""
    return " ".join(filter(None, (futures, unknown)))


def _findings(findings: Sequence[Finding]) -> Markup:
    if not findings:
        return paragraph("Nothing doubtful was found.")
    rows = [(f.kind, f.symbol, f.date, f.line or "", f.value, f.count, f.treatment) for f in findings]
    heads = ("What", "Symbol", "Date", "Line", "Value", "Times", "Treatment")
    return table("What is doubtful in the data, and how it was treated", heads, rows, texts=(0, 1, 2, 4, 6))


def _card(source: dict[str, str]) -> Markup:
    lines = (
        join([element("dt", name), element("dd", _value(key, source[key] or "not stated"))])
        for key, name in CARD.items()
    )
    return element("dl", *lines, class_="source")


def _value(key: str, text: str) -> Markup | str:
    return code(text) if key == "sha256" else text


def reproduce(run: Run, files: str) -> Markup:
    """The command, the seed and the versions that give the same numbers."""
    return section(
        "reproduce",
        "Reproduce",
        paragraph(f"The same data, versions and seed ({run.seed}) give the same numbers to the last bit on a CPU:"),
        element("pre", run.command),
        table("Versions", ("Package", "Version"), run.versions.items(), texts=(0, 1)),
        paragraph(files),
    )
