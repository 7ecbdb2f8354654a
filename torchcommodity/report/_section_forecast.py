"""Fan chart and table of quantiles of every symbol."""

from torchcommodity.report._blocks import figure, paragraph, price, section
from torchcommodity.report._contents import Contents
from torchcommodity.report._markup import Markup, element, join, table

SHOWN = (0.05, 0.10, 0.25, 0.5, 0.75, 0.90, 0.95)
CAPTION = "Recent prices, then the median with its 50, 80 and 90 % bands; the dotted line is the last price."


def forecasts(contents: Contents, charts: int) -> Markup:
    """Every symbol in turn, the first `charts` of them with a chart."""
    count = len(contents.forecast.symbols)
    limit = f" Charts are drawn for the first {charts} symbols; the tables are complete." if charts < count else ""
    return section(
        "forecast",
        "Forecast",
        paragraph(
            f"Horizons count rows of the data; {contents.calendar.rule}. Quantiles are stated at the horizons, and "
            f"straight lines between them only guide the eye.{limit}"
        ),
        paragraph(f"What training did: {contents.record.note}."),
        *(_symbol(contents, n, n < charts) for n in range(count)),
    )


def _symbol(contents: Contents, n: int, chart: bool) -> Markup:
    symbol = contents.forecast.symbols[n]
    drawn = figure(f"fan-{n}", _in_words(contents, n), CAPTION) if chart else ""
    return join([element("h3", symbol), paragraph(_start(contents, n)), drawn, _quantiles(contents, n)])


def _start(contents: Contents, n: int) -> str:
    forecast = contents.forecast
    origin, unit = str(forecast.origins[n]), forecast.units[n]
    text = f"Last price {price(forecast.last[n].item())}{f' {unit}' if unit else ''} on {origin}."
    if origin == str(forecast.origin):
        return text
    return (
        f"{text} The data go on to {forecast.origin} without a positive price of {forecast.symbols[n]}: its forecast "
        "starts from the last positive one and counts from that date."
    )


def _quantiles(contents: Contents, n: int) -> Markup:
    forecast, calendar = contents.forecast, contents.calendar
    unit, origin = forecast.units[n], str(forecast.origins[n])
    levels = [(q, level) for q, level in enumerate(forecast.levels) if round(level, 3) in SHOWN]
    rows = [
        (calendar.name(h), calendar.ahead(origin, h), *(price(forecast.prices[i, n, q].item()) for q, _ in levels))
        for i, h in enumerate(forecast.horizons)
    ]
    heads = ["Horizon", "Date", *("median" if level == 0.5 else f"{100 * level:.0f} %" for _, level in levels)]
    caption = f"Quantiles of the price of {forecast.symbols[n]}{f', {unit}' if unit else ''}"
    return table(caption, heads, rows, texts=(0, 1))


def _in_words(contents: Contents, n: int) -> str:
    forecast, last = contents.forecast, contents.forecast.prices[-1, n]
    return (
        f"Fan chart of {forecast.symbols[n]}: recent prices up to {price(forecast.last[n].item())}, then bands that "
        f"to {price(last[0].item())} to {price(last[-1].item())} after "
        f"{contents.calendar.name(forecast.horizons[-1])}. The table below has the numbers."
    )
