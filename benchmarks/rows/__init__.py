"""The rows of the speed table, one file per family; add a row to the family's ROWS."""

from rows import attention, correlation, fused, recurrences, recurrent, seasonal, technical, volatility, windows

ROWS = (
    *attention.ROWS,
    *correlation.ROWS,
    *fused.ROWS,
    *recurrences.ROWS,
    *recurrent.ROWS,
    *seasonal.ROWS,
    *technical.ROWS,
    *volatility.ROWS,
    *windows.ROWS,
)
