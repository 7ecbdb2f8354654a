"""Forecast section: a fan chart, quantiles and losses of a position per commodity, one of them shown at a time."""

from torchcommodity.forecast import Forecast, Outlook, OutlookRow
from torchcommodity.report._markup import Markup, details, element, figure, join, paragraph, section
from torchcommodity.report._report_data import ReportData
from torchcommodity.report._tables import format_number, format_percent, table
from torchcommodity.risk import position_losses, price_losses

LEVELS = (0.05, 0.10, 0.25, 0.5, 0.75, 0.90, 0.95)
CAPTION = (
    "Prices, then the median and the intervals ahead, which widen with the square root of time between the "
    "horizons (dots). The dotted line is the day of the last price."
)
LOSS_LEVEL = 0.95
READING = (
    "Share of the position's value. A loss beyond value at risk (VaR) is expected in 5 of 100 cases; expected "
    "shortfall (ES) is the mean loss of these cases, for which the outermost quantiles are extrapolated."
)
ROLLS = "The jump of a front-month price when its contract rolls is included, although no position earns it."


def forecast_section(report: ReportData, outlook: Outlook, charts: int) -> Markup:
    """Forecast section with a panel per symbol; the first `charts` symbols have a chart."""
    forecast = report.forecast
    count = len(forecast.symbols)
    limit = f" Only the first {charts} commodities have a chart." if charts < count else ""
    selection: object = ""
    if count > 1:  # list of the panels; without JavaScript it is hidden, and all panels are shown
        options = (element("option", _title(row), value=f"forecast-{n}") for n, row in enumerate(outlook.rows))
        label = element("label", "Commodity ", element("select", *options))
        selection = element("p", label, id="selection", hidden="")
    return section(
        "forecast",
        "Forecast by commodity",
        selection,
        paragraph(limit) if limit else "",
        *(_panel(report, row, n, n < charts) for n, row in enumerate(outlook.rows)),
    )


def _panel(report: ReportData, row: OutlookRow, n: int, chart: bool) -> Markup:
    forecast = report.forecast
    last = format_number(row.last_price, row.quoted_decimals)
    low, high = (format_number(price, row.decimals) for price in forecast.prices[-1, n, [0, -1]].tolist())
    description = (
        f"Fan chart of {row.name}: recent prices up to {last}, then "
        f"intervals that widen to {low} to {high} after {row.ranges[-1].name}. The table below has the numbers."
    )
    origin = f"{f'Last price {last} {row.unit}'.rstrip()} on {row.last_date}."
    if row.last_date != str(forecast.origin):
        origin += (
            f" The data end on {forecast.origin}, but {row.symbol} has no {'' if row.signed else 'positive '}price "
            f"after {row.last_date}: its forecast starts there."
        )
    # a row per level and a column per horizon, which a phone can show without scrolling
    columns = ["Quantile", *(join([item.name, " ", element("span", item.date, class_="small")]) for item in row.ranges)]
    rows = [
        (
            "median" if level == 0.5 else f"{round(100 * level, 2):g} %",
            *(format_number(price, row.decimals) for price in forecast.prices[:, n, q].tolist()),
        )
        for q, level in enumerate(forecast.levels)
        if len(forecast.levels) <= len(LEVELS) or round(level, 3) in LEVELS
    ]
    caption = f"Quantiles of the price of {row.name}{f', {row.unit}' if row.unit else ''}"
    return element(
        "div",
        element("h3", _title(row)),
        paragraph(origin),
        figure(f"fan-{n}", description, CAPTION, decimals=row.decimals) if chart else "",
        table(caption, columns, rows),
        paragraph(f"What moves the median over {report.location.sentence(row.symbol)}.") if report.location else "",
        losses(forecast, row, n),
        id=f"forecast-{n}",
        class_="panel",
    )


def _title(row: OutlookRow) -> str:
    """`Soybean oil (SOYOIL)`."""
    return row.name if row.name == row.symbol else f"{row.name} ({row.symbol})"


def losses(forecast: Forecast, row: OutlookRow, n: int) -> Markup:
    """Table of a long and a short position, on request; nothing where the forecast has no quantiles so far out."""
    if forecast.levels[0] > 1 - LOSS_LEVEL + 1e-9 or forecast.levels[-1] < LOSS_LEVEL - 1e-9:
        return Markup("")
    dates = (element("span", item.date, class_="small") for item in row.ranges)
    columns = ["Loss", *(join([item.name, " ", day]) for item, day in zip(row.ranges, dates))]
    names = ("Long, VaR", "Long, ES", "Short, VaR", "Short, ES")
    caption, reading = f"Losses of a position in {row.name} at the level of 95 %", READING
    if row.symbol in forecast.signed:
        changes = forecast.prices[:, n] - forecast.last[n]
        losses = price_losses(changes, forecast.levels, LOSS_LEVEL)
        rows = [(name, *(format_number(x, row.decimals) for x in loss.tolist())) for name, loss in zip(names, losses)]
        unit = row.unit or "units of the price"
        reading = READING.replace("Share of the position's value.", f"In {unit} for each unit held.")
    else:
        losses = position_losses(forecast.log_returns[:, n], forecast.levels, LOSS_LEVEL)
        rows = [(name, *map(format_percent, share.tolist())) for name, share in zip(names, losses)]
    note = f"{reading} {ROLLS}" if row.contract else reading
    return details("Losses of a position, 95 %", table(caption, columns, rows), paragraph(note, class_="lead"))
