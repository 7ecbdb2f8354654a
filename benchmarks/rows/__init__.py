"""The rows, a file per family: to add one, append it to the family's ROWS."""

from rows import correlation, fused, indicators, recurrences, seasonal, volatility

ROWS = (*recurrences.ROWS, *correlation.ROWS, *indicators.ROWS, *volatility.ROWS, *seasonal.ROWS, *fused.ROWS)
