"""The rows of the speed table, one file per family; add a row to the family's ROWS."""

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
