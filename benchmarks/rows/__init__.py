"""The rows, a file per family: to add one, append it to the family's ROWS."""

from rows import correlation, fused, indicators, recurrences, seasonal, volatility, windows

ROWS = (
    *correlation.ROWS,
    *fused.ROWS,
    *indicators.ROWS,
    *recurrences.ROWS,
    *seasonal.ROWS,
    *volatility.ROWS,
    *windows.ROWS,
)
