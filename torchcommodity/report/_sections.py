"""Header, data and reproduction sections."""

from collections.abc import Iterable, Sequence

from torchcommodity.data import CONTRACTS, Panel, summarize_findings
from torchcommodity.forecast import Outlook
from torchcommodity.report._markup import Markup, code, details, element, join, paragraph, section
from torchcommodity.report._report_data import ReportData, RunRecord
from torchcommodity.report._section_outlook import stale_note
from torchcommodity.report._tables import table

LINKS = {
    "outlook": "Ranges ahead",
    "forecast": "By commodity",
    "backtest": "Past forecasts",
    "correlation": "Correlation",
    "about": "About this forecast",
}
SCOPE = (
    "The forecast states how uncertain prices are: the range of plausible prices, whose width follows the volatility "
    "of the market.",
    "It says little about direction: only related prices, the season and contract rolls move the median from the last "
    "price, and related prices and season by at most half a standard deviation.",
    "It uses past prices, contract calendars and futures curves; not inventories, weather, news or positions. "
    "A front-month series jumps when its contract rolls, although no position earns the jump; the intervals include "
    "its expected part.",
    "The backtest shows how often the intervals contained the outcome in past years. Past coverage is no guarantee, "
    "and none of this is investment advice.",
)
TREATMENT = (
    "A missing, zero or negative price has no log-return: the next return spans the gap. No price is changed, filled "
    "or dropped."
)
SOURCE_FIELDS = {
    "publisher": "Publisher",
    "series": "Series",
    "unit": "Unit",
    "location": "Address or file",
    "license": "License",
    "credit": "Credit line",
    "retrieved": "Retrieved",
    "sha256": "sha256",
}


def title(report: ReportData) -> str:
    """`Price forecast: WTI, BRENT`."""
    symbols: Sequence[str] = report.forecast.symbols
    return f"Price forecast: {', '.join(symbols[:6])}{f' and {len(symbols) - 6} more' if len(symbols) > 6 else ''}"


def header(report: ReportData, outlook: Outlook) -> Markup:
    """Old prices first, then the title, what it is made from and when, and links to the sections."""
    dates, count = report.panel.dates, len(outlook.rows)
    links = (element("li", element("a", name, href=f"#{anchor}")) for anchor, name in LINKS.items())
    stale = stale_note(outlook)
    commodities = f"{count} {'commodity' if count == 1 else 'commodities'}"
    lead = f"{commodities}, {report.panel.frequency} prices to {dates[-1]}. Created {created(report.run)}."
    return join(
        [
            paragraph(element("strong", stale), class_="warning") if stale else "",
            element("h1", "Price forecast"),
            paragraph(lead, class_="lead"),
            element("nav", element("ul", *links), aria_label="Sections"),
        ]
    )


def created(run: RunRecord) -> str:
    """`2026-08-18 09:30 UTC`."""
    return f"{run.created[:16].replace('T', ' ')} UTC"


def scope_note(heading: str, sentences: Iterable[str]) -> Markup:
    """Box with the scope of the results."""
    items = (element("li", sentence) for sentence in sentences)
    return element("div", element("h2", heading), element("ul", *items), class_="note")


def about_section(report: ReportData, files: str) -> Markup:
    """Everything that a reader may ask about the numbers: limits, source, and how to compute them again."""
    panel, run = report.panel, report.run
    dates = f"Prices from {panel.dates[0]} to {panel.dates[-1]}, {len(panel):,} rows"
    horizons = f"Horizons count rows with a price of the symbol; {report.forecast.calendar.rule}"
    return section(
        "about",
        "About this forecast",
        element("ul", *(element("li", sentence) for sentence in SCOPE)),
        paragraph(f"{dates}. {report.record.note}. {horizons}."),
        details("Source", *source_parts(panel, run)),
        details("Reproduce", *reproduce_parts(run, files)),
    )


def data_section(panel: Panel, run: RunRecord) -> Markup:
    """Data problems with their treatment, and the source of every column."""
    return section("data", "Source", *source_parts(panel, run))


def source_parts(panel: Panel, run: RunRecord) -> list[Markup]:
    """Where the prices come from, and how those that are missing or doubtful are treated."""
    cards = []
    for record in panel.sources():
        texts = {field: record[field] or "not stated" for field in SOURCE_FIELDS}
        texts["sha256"] = code(texts["sha256"])
        lines = (join([element("dt", name), element("dd", texts[field])]) for field, name in SOURCE_FIELDS.items())
        cards.append(element("div", element("h3", record["symbol"]), element("dl", *lines, class_="source")))
    problems = paragraph("No data problems were found.")
    if panel.findings:
        columns = ("Problem", "Symbol", "Date", "Line", "Value", "Count", "Treatment")
        rows = [
            (f.kind, f.symbol, f.date, f.line or "", f.value, f.count, f.treatment)
            for f in summarize_findings(panel.findings)
        ]
        caption = "Data problems and their treatment"
        problems = table(caption, columns, rows, text_columns=(0, 1, 2, 4, 6), stack="findings")
    source = f"Source: {run.source}. sha256 of prices, dates, symbols, contracts and curve: "
    return [
        paragraph(source, code(run.data_sha256)),
        paragraph(f"{TREATMENT} {describe_contracts(panel)}"),
        problems,
        element("div", *cards, class_="columns"),
    ]


def describe_contracts(panel: Panel) -> str:
    """Which columns are futures with a roll calendar, and which are treated as spot prices."""
    pairs = list(zip(panel.symbols, panel.contracts))
    futures = [f"{symbol} ({CONTRACTS[code].name}, {CONTRACTS[code].exchange})" for symbol, code in pairs if code]
    rolled = panel.roll_months(ahead=0).any(0).tolist()
    others = ", ".join(symbol for (symbol, code), rolls in zip(pairs, rolled) if not code and rolls)
    spot = ", ".join(symbol for (symbol, code), rolls in zip(pairs, rolled) if not code and not rolls)
    averages = ", ".join(symbol for symbol, is_average in zip(panel.symbols, panel.averages) if is_average)
    curve = "with a curve of nearby contracts" if panel.curve is not None else "without a curve of nearby contracts"
    texts = (
        f"Front-month futures with a roll calendar, {curve}: {', '.join(futures)}." if futures else "",
        f"Futures of unknown products with the rolls that they made, {curve}: {others}." if others else "",
        f"Treated as spot prices, without rolls: {spot}." if spot else "",
        f"Averages of their period, whose memory is part of the forecast: {averages}." if averages else "",
    )
    return " ".join(filter(None, texts))


def reproduce_section(run: RunRecord, files: str) -> Markup:
    """Reproduction section: command, seed and versions."""
    return section("reproduce", "Reproduce", *reproduce_parts(run, files))


def reproduce_parts(run: RunRecord, files: str) -> list[Markup]:
    """Command, seed and versions."""
    return [
        paragraph(f"The same data, versions and seed ({run.seed}) give bit-identical numbers on a CPU:"),
        element("pre", run.command),
        versions_table(run),
        paragraph(files),
    ]


def versions_table(run: RunRecord) -> Markup:
    """Packages and their versions."""
    return table("Versions", ("Package", "Version"), run.versions.items(), text_columns=(0, 1))
