"""Forecast section: fan charts and quantile tables."""

from torchcommodity.forecast import Forecast
from torchcommodity.report._blocks import figure, format_price, paragraph, section
from torchcommodity.report._markup import Markup, element, join, table
from torchcommodity.report._report_data import ReportData

LEVELS = (0.05, 0.10, 0.25, 0.5, 0.75, 0.90, 0.95)
CAPTION = (
    "Recent prices, the median forecast and its 50, 80 and 90 % intervals. The dotted line is the last price's date."
)


def forecast_section(report: ReportData, charts: int) -> Markup:
    """Forecast section with a subsection per symbol; the first `charts` symbols have a chart."""
    forecast = report.forecast
    count = len(forecast.symbols)
    limit = f" Only the first {charts} symbols have a chart." if charts < count else ""
    return section(
        "forecast",
        "Forecast",
        paragraph(
            f"Horizons count rows with a price of the symbol; {forecast.calendar.rule}. Quantiles are forecast "
            f"at the horizons; the lines between them are interpolated.{limit}"
        ),
        paragraph(f"{report.record.note}."),
        *(_symbol(forecast, n, n < charts) for n in range(count)),
    )


def _symbol(forecast: Forecast, n: int, chart: bool) -> Markup:
    chart_box = figure(f"fan-{n}", _description(forecast, n), CAPTION) if chart else ""
    heading = element("h3", forecast.symbols[n])
    return join([heading, paragraph(_origin(forecast, n)), chart_box, _quantiles(forecast, n)])


def _origin(forecast: Forecast, n: int) -> str:
    origin, unit = str(forecast.origins[n]), forecast.units[n]
    text = f"Last price {format_price(forecast.last[n].item())}{f' {unit}' if unit else ''} on {origin}."
    if origin == str(forecast.origin):
        return text
    return (
        f"{text} The data end on {forecast.origin}, but {forecast.symbols[n]} has no positive price after {origin}: "
        "its forecast starts there."
    )


def _quantiles(forecast: Forecast, n: int) -> Markup:
    unit = forecast.units[n]
    levels = [(q, level) for q, level in enumerate(forecast.levels) if round(level, 3) in LEVELS]
    rows = [
        (
            forecast.calendar.name(h),
            str(forecast.target_dates[i, n]),
            *(format_price(forecast.prices[i, n, q].item()) for q, _ in levels),
        )
        for i, h in enumerate(forecast.horizons)
    ]
    columns = ["Horizon", "Date", *("median" if level == 0.5 else f"{100 * level:.0f} %" for _, level in levels)]
    caption = f"Quantiles of the price of {forecast.symbols[n]}{f', {unit}' if unit else ''}"
    return table(caption, columns, rows, text_columns=(0, 1))


def _description(forecast: Forecast, n: int) -> str:
    prices = forecast.prices[-1, n]
    return (
        f"Fan chart of {forecast.symbols[n]}: recent prices up to {format_price(forecast.last[n].item())}, then "
        f"intervals that widen to {format_price(prices[0].item())} to {format_price(prices[-1].item())} after "
        f"{forecast.calendar.name(forecast.horizons[-1])}. The table below has the numbers."
    )
