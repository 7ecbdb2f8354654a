"""Losses of a position in one commodity: value at risk and expected shortfall of a forecast."""

from torchcommodity.forecast import Forecast, OutlookRow
from torchcommodity.report._blocks import details, format_percent, paragraph
from torchcommodity.report._markup import Markup, element, join
from torchcommodity.report._tables import table
from torchcommodity.risk import position_losses

LEVEL = 0.95
READING = (
    "Share of the position's value. A loss beyond value at risk (VaR) is expected in 5 of 100 cases; expected "
    "shortfall (ES) is the mean loss of these cases, for which the outermost quantiles are extrapolated."
)
ROLLS = "The jump of a front-month price when its contract rolls is included, although no position earns it."


def losses(forecast: Forecast, row: OutlookRow, n: int) -> Markup:
    """Table of a long and a short position, on request; nothing where the forecast has no quantiles so far out."""
    if forecast.levels[0] > 1 - LEVEL + 1e-9 or forecast.levels[-1] < LEVEL - 1e-9:
        return Markup("")
    dates = (element("span", item.date, class_="small") for item in row.ranges)
    columns = ["Loss", *(join([item.name, " ", day]) for item, day in zip(row.ranges, dates))]
    rows = [(name, *map(format_percent, shares)) for name, shares in _shares(forecast, n).items()]
    caption = f"Losses of a position in {row.name} at the level of 95 %"
    note = f"{READING} {ROLLS}" if row.contract else READING
    return details("Losses of a position, 95 %", table(caption, columns, rows), paragraph(note, class_="lead"))


def _shares(forecast: Forecast, n: int) -> dict[str, list[float]]:
    """Row of the table -> share of the value at each horizon."""
    shares = position_losses(forecast.log_returns[:, n], forecast.levels, LEVEL)
    return {name: share.tolist() for name, share in zip(("Long, VaR", "Long, ES", "Short, VaR", "Short, ES"), shares)}
