"""The sections of the page, in the order in which an analyst reads them."""

from collections.abc import Sequence

from torchcommodity.forecast.backtest import OURS
from torchcommodity.report.contents import Contents
from torchcommodity.report.correlation import Correlation, pairs_by_strength
from torchcommodity.report.evidence import Evidence, tally, verdict
from torchcommodity.report.markup import Markup, element, join, table

SHOWN = (0.05, 0.10, 0.25, 0.5, 0.75, 0.90, 0.95)
MODELS = {
    OURS: "HAR-LSTM (this forecast)",
    "untrained": "HAR-LSTM without its network",
    "unconditional": "Unconditional quantiles",
    "ewma": "EWMA (RiskMetrics)",
    "garch": "GARCH(1,1)",
    "har": "HAR",
}
NOT_CLAIMED = (
    "It is a statement about uncertainty: how wide the range of plausible prices is, and how that width changes with the "
    "volatility of the market.",
    "It makes almost no claim about direction: the median stays close to today's price by construction, because past "
    "prices say very little about it.",
    "It knows past prices only: no inventories, weather, news, positions or futures curves. A front-month series that rolls "
    "from one contract to the next jumps without anybody earning it, and the bands contain those jumps.",
    "Bands hold on average over the past that was tested, not in every market and not for certain in the next. It is no "
    "investment advice.",
)


def title(contents: Contents) -> str:
    return f"Price forecast: {_names(contents.forecast.symbols)}"


def header(contents: Contents) -> Markup:
    """Title, span of the data, when it was made, what it is and is not, and where to find what."""
    panel, run = contents.panel, contents.run
    places = {"forecast": "Forecast", "walk-forward": "Walk-forward test", "correlation": "Correlation"}
    places |= {"data": "Data", "reproduce": "Reproduce"}
    return join(
        [
            element("h1", title(contents)),
            element(
                "p",
                f"Prices from {panel.dates[0]} to {panel.dates[-1]} ({len(panel):,} rows); made {run.made}; seed {run.seed}.",
                class_="lead",
            ),
            element(
                "nav",
                element("ul", *(element("li", element("a", name, href=f"#{key}")) for key, name in places.items())),
                aria_label="Sections",
            ),
            element(
                "div",
                element("p", element("strong", "What this forecast is, and what it is not")),
                element("ul", *(element("li", sentence) for sentence in NOT_CLAIMED)),
                class_="note",
            ),
        ]
    )


def forecasts(contents: Contents, fans: Sequence[str]) -> Markup:
    """A fan chart and a table of price quantiles for every symbol."""
    parts: list[object] = [
        element("p", f"Dates ahead count {contents.calendar.rule}. Quantiles are stated at the four horizons; the straight "
                "lines between them only guide the eye."),
        element("p", f"The model: {contents.record.note}."),
    ]  # fmt: skip
    for n in range(len(contents.forecast.symbols)):
        parts += [_symbol(contents, n, fans[n] if n < len(fans) else None)]
    if len(fans) < len(contents.forecast.symbols):
        parts += [element("p", f"Charts are drawn for the first {len(fans)} symbols; the tables are complete.")]
    return _section("forecast", "Forecast", *parts)


def _symbol(contents: Contents, n: int, chart: str | None) -> Markup:
    forecast, calendar = contents.forecast, contents.calendar
    symbol, unit, origin = forecast.symbols[n], forecast.units[n], str(forecast.origins[n])
    last = price(forecast.last[n].item())
    start = f"Last price {last}{f' {unit}' if unit else ''} on {origin}."
    if origin != str(forecast.origin):
        start += (
            f" The data go on to {forecast.origin}, but without a positive price of {symbol}: the forecast starts from the "
            "last positive one, and counts its horizons from that date."
        )
    levels = [(q, level) for q, level in enumerate(forecast.levels) if round(level, 3) in SHOWN]
    rows = [
        (
            calendar.name(h),
            calendar.ahead(origin, h),
            *(price(forecast.prices[i, n, q].item()) for q, _ in levels),
        )
        for i, h in enumerate(forecast.horizons)
    ]
    caption = f"Quantiles of the price of {symbol}{f' in {unit}' if unit else ''}"
    names = ["Horizon", "Date", *("median" if level == 0.5 else f"{level:.0%}" for _, level in levels)]
    h, middle = len(forecast.horizons) - 1, forecast.prices[-1, n]
    words = (
        f"Fan chart of {symbol}: recent prices up to {last}, then bands that widen to {price(middle[0].item())} to "
        f"{price(middle[-1].item())} after {calendar.name(forecast.horizons[h])}. The table below has the numbers."
    )
    return join(
        [
            element("h3", symbol),
            element("p", start),
            figure(chart, words, "Price history and the median with its 50, 80 and 90 % bands.") if chart else "",
            table(caption, names, rows, texts=(0, 1)),
        ]
    )


def walk_forward(contents: Contents) -> Markup:
    """Wins and losses against every baseline, calibration, and coverage of every symbol."""
    evidence, calendar = contents.evidence, contents.calendar
    if evidence is None:
        return _section("walk-forward", "Walk-forward test", element("p", contents.no_evidence))
    out = f" Left out for want of history: {', '.join(evidence.left_out)}." if evidence.left_out else ""
    words = "Calibration chart: " + "; ".join(
        f"{calendar.name(h)}: {_percent(_covered(evidence, h))} of outcomes fell inside the 90 % band"
        for h in evidence.horizons()
    )
    columns = ["Symbol", *map(calendar.name, evidence.horizons())]
    coverage = [(symbol, *map(_percent, found.values())) for symbol, found in evidence.coverage.items()]
    return _section(
        "walk-forward",
        "Walk-forward test",
        element("p", f"Every year from {evidence.first} to {evidence.last} was forecast by models fitted on earlier years "
                f"only, with one horizon left between training and test; symbols: {', '.join(evidence.symbols)}.{out}"),
        element("p", element("strong", tally(evidence)), " Nothing is left out of the table, losses included."),
        scores_table(contents, evidence),
        element("p", "Pinball loss is the mean over quantile levels in log-return, smaller is better; skill is the part of "
                "the unconditional quantiles' loss that a model saves. The p-value is of the Diebold-Mariano test of this "
                "forecast against the row's model, corrected for overlapping horizons. QLIKE scores the variance alone.",
                class_="lead"),
        element("h3", "Does it keep its word?"),
        figure("calibration", f"{words}.", "How often the price ended at or below each quantile. Above the dotted line: the "
               "quantile is too high; below: too low.", square=True),
        table("Share of outcomes inside the 90 % band, by symbol", columns, coverage),
        element("p", "Should be near 90 %. Over long horizons there are few independent windows, so that some distance is "
                "chance.", class_="lead"),
    )  # fmt: skip


def scores_table(contents: Contents, evidence: Evidence) -> Markup:
    """One row a horizon and model; ours first, each baseline with its verdict in words."""
    body, before = [], None
    for row in evidence.rows:
        words = verdict(row)
        kind = next((word for word in ("win", "loss") if words.startswith(word)), None)
        cells = [
            f"{1e4 * row['pinball']:.2f}",
            f"{row['skill']:+.2f} %",
            _percent(row["coverage90"]),
            "" if row["qlike"] is None else f"{row['qlike']:.3f}",
        ]
        marks = [*(["ours"] if row["model"] == OURS else []), *(["first"] if row["horizon"] != before else [])]
        name = contents.calendar.name(row["horizon"])
        body.append(
            element(
                "tr",
                element("td", name),
                element("th", MODELS.get(row["model"], row["model"]), scope="row"),
                *(element("td", cell, class_="number") for cell in cells),
                element("td", words, class_=kind),
                class_=" ".join(marks) or None,
            )
        )
        before = row["horizon"]
    heads = ("Horizon", "Model", "Pinball loss, 1e-4", "Skill", "Inside 90 % band", "QLIKE", "This forecast against it")
    numbers = range(2, 6)
    caption = "Walk-forward scores of this forecast and of every baseline"
    head = (element("th", name, scope="col", class_="number" if i in numbers else None) for i, name in enumerate(heads))
    whole = element(
        "table", element("caption", caption), element("thead", element("tr", *head)), element("tbody", *body)
    )
    return element("div", whole, class_="scroll", tabindex="0", role="region", aria_label=caption)


def correlations(found: Correlation | None) -> Markup:
    """Average correlation over time with regime changes, and the latest matrix."""
    name = "Correlation and its regimes"
    if found is None:
        return _section("correlation", name, element("p", "Correlation needs at least two symbols with 120 rows."))
    when = ", ".join(found.changes) if found.changes else "none"
    rest = f" The first {len(found.symbols)} symbols are shown, {found.left_out} are not." if found.left_out else ""
    rows = [(f"{a}, {b}", f"{value:+.2f}") for a, b, value in pairs_by_strength(found)[:10]]
    words = (
        f"Line chart of the average correlation from {found.dates[0]} to {found.latest_date}, "
        f"with {len(found.changes)} regime changes marked by dotted lines."
    )
    return _section(
        "correlation",
        name,
        element("p", f"Correlation of daily log-returns over the last {found.window} rows. A new regime begins when the "
                f"correlations differ on average by more than {found.threshold} from those {found.window} rows before, "
                f"at most once in {found.window} rows: {found.regimes} regimes.{rest}"),
        figure("correlation", words, "Average correlation of all pairs; a dotted line marks a regime change."),
        element("details", element("summary", f"Dates of the {len(found.changes)} regime changes"), element("p", when)),
        element("h3", f"Latest correlations, {found.latest_date}"),
        element("div", figure("matrix", f"Heat map of the correlation matrix on {found.latest_date}; the strongest pairs "
                "are in the table.", "Correlation of every pair.", square=True),
                table("Strongest pairs", ("Pair", "Correlation"), rows), class_="columns"),
    )  # fmt: skip


def data(contents: Contents) -> Markup:
    """Where every column comes from, and everything doubtful that was found with what was done about it."""
    cards = [element("div", element("h3", source["symbol"]), _card(source)) for source in contents.panel.sources()]
    rows = [(f.kind, f.symbol, f.date, f.line or "", f.value, f.count, f.treatment) for f in contents.findings]
    heads = ("What", "Symbol", "Date", "Line", "Value", "Times", "Treatment")
    found = (
        table("What was found in the data, and the rule by which it was treated", heads, rows, texts=(0, 1, 2, 4, 6))
        if rows
        else element("p", "Nothing doubtful was found.")
    )
    return _section(
        "data",
        "Data",
        element("p", f"Asked from {contents.run.source}. sha256 of the numbers used: ", _code(contents.run.data_sha256)),
        element("p", "A price that is missing, zero or negative has no log-return: the next return spans the gap, and no "
                "price is altered or filled in."),
        found,
        element("div", *cards, class_="columns"),
    )  # fmt: skip


def _card(source: dict[str, str]) -> Markup:
    names = {"publisher": "Publisher", "series": "Series", "unit": "Unit", "location": "Address or file"}
    names |= {"licence": "Licence", "retrieved": "Retrieved", "sha256": "sha256"}
    shown = ((name, source[key] or "not stated") for key, name in names.items())
    lines = (
        join([element("dt", name), element("dd", _code(text) if name == "sha256" else text)]) for name, text in shown
    )
    return element("dl", *lines, class_="source")


def reproduce(contents: Contents) -> Markup:
    """The command, the seed and the versions that give the same numbers."""
    run = contents.run
    return _section(
        "reproduce",
        "Reproduce",
        element("p", "The same data, seed and versions give the same numbers to the last bit on a CPU:"),
        element("pre", run.command),
        table("Versions", ("Package", "Version"), run.versions.items(), texts=(0, 1)),
        element("p", "The same quantiles are in forecast.csv and, with provenance and scores, in forecast.json."),
    )


def figure(name: str, words: str, caption: str, *, square: bool = False) -> Markup:
    """A place for a chart, which its words stand for where it cannot be seen."""
    kind = "chart square" if square else "chart"
    box = element("div", element("p", words), id=name, class_=kind, role="img", aria_label=words)
    return element("figure", box, element("figcaption", caption))


def price(value: float) -> str:
    """Two decimals, or four significant digits where that says nothing."""
    return f"{value:,.2f}" if abs(value) >= 10 else f"{value:.4g}"


def _section(name: str, heading: str, *parts: object) -> Markup:
    return element("section", element("h2", heading, id=f"{name}-heading"), *parts, id=name, aria_labelledby=f"{name}-heading")  # fmt: skip


def _names(symbols: Sequence[str]) -> str:
    return ", ".join(symbols[:6]) + (f" and {len(symbols) - 6} more" if len(symbols) > 6 else "")


def _covered(evidence: Evidence, horizon: int) -> float | None:
    rows = [row for row in evidence.rows if row["model"] == OURS and row["horizon"] == horizon]
    return rows[0]["coverage90"] if rows else None


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{share:.1%}".replace("%", " %")


def _code(text: str) -> Markup:
    return element("code", text)
