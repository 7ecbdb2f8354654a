"""Forecast section: a fan chart and a table of quantiles per commodity, one of them shown at a time."""

from torchcommodity.forecast import Forecast, Outlook, OutlookRow
from torchcommodity.report._blocks import figure, format_number, paragraph, section
from torchcommodity.report._markup import Markup, element, join
from torchcommodity.report._report_data import ReportData
from torchcommodity.report._section_losses import losses
from torchcommodity.report._tables import table

LEVELS = (0.05, 0.10, 0.25, 0.5, 0.75, 0.90, 0.95)
CAPTION = (
    "Prices, then the median and the intervals ahead, which widen with the square root of time between the "
    "horizons (dots). The dotted line is the day of the last price."
)


def forecast_section(report: ReportData, outlook: Outlook, charts: int) -> Markup:
    """Forecast section with a panel per symbol; the first `charts` symbols have a chart."""
    forecast = report.forecast
    count = len(forecast.symbols)
    limit = f" Only the first {charts} commodities have a chart." if charts < count else ""
    return section(
        "forecast",
        "Forecast by commodity",
        _selection(outlook) if count > 1 else "",
        paragraph(limit) if limit else "",
        *(_panel(forecast, row, n, n < charts) for n, row in enumerate(outlook.rows)),
    )


def _selection(outlook: Outlook) -> Markup:
    """List of the panels; without JavaScript it is hidden, and all panels are shown."""
    options = (element("option", _title(row), value=f"forecast-{n}") for n, row in enumerate(outlook.rows))
    label = element("label", "Commodity ", element("select", *options))
    return element("p", label, id="selection", hidden="")


def _panel(forecast: Forecast, row: OutlookRow, n: int, chart: bool) -> Markup:
    description = _description(forecast, row, n)
    chart_box = figure(f"fan-{n}", description, CAPTION, decimals=row.decimals) if chart else ""
    tables = _quantiles(forecast, row, n), losses(forecast, row, n)
    parts = [element("h3", _title(row)), paragraph(_origin(forecast, row)), chart_box, *tables]
    return element("div", *parts, id=f"forecast-{n}", class_="panel")


def _title(row: OutlookRow) -> str:
    """`Soybean oil (SOYOIL)`."""
    return row.name if row.name == row.symbol else f"{row.name} ({row.symbol})"


def _origin(forecast: Forecast, row: OutlookRow) -> str:
    text = f"Last price {format_number(row.last_price, row.quoted_decimals)} {row.unit}".rstrip()
    text = f"{text} on {row.last_date}."
    if row.last_date == str(forecast.origin):
        return text
    return (
        f"{text} The data end on {forecast.origin}, but {row.symbol} has no positive price after {row.last_date}: "
        "its forecast starts there."
    )


def _quantiles(forecast: Forecast, row: OutlookRow, n: int) -> Markup:
    """A row per level and a column per horizon, which a phone can show without scrolling."""
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
    return table(caption, columns, rows)


def _description(forecast: Forecast, row: OutlookRow, n: int) -> str:
    low, high = (format_number(price, row.decimals) for price in forecast.prices[-1, n, [0, -1]].tolist())
    return (
        f"Fan chart of {row.name}: recent prices up to {format_number(row.last_price, row.quoted_decimals)}, then "
        f"intervals that widen to {low} to {high} after {row.ranges[-1].name}. The table below has the numbers."
    )
