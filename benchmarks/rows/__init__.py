"""The rows, a file per family: to add one, append it to the family's ROWS."""

from rows import attention, correlation, fused, indicators, recurrences, recurrent, seasonal, volatility, windows

ROWS = (
    *attention.ROWS,
    *correlation.ROWS,
    *fused.ROWS,
    *indicators.ROWS,
    *recurrences.ROWS,
    *recurrent.ROWS,
    *seasonal.ROWS,
    *volatility.ROWS,
    *windows.ROWS,
)
