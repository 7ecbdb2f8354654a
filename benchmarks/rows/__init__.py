"""The rows, a file per family: to add one, append it to the family's ROWS."""

from rows import correlation, indicators, recurrences, seasonal, volatility, windows

ROWS = (*recurrences.ROWS, *correlation.ROWS, *indicators.ROWS, *volatility.ROWS, *seasonal.ROWS, *windows.ROWS)
