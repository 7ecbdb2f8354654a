"""Forecasts for tables of any number of panels, from DuckDB or Parquet into DuckDB."""

from torchcommodity.batch._run import Summary as Summary
from torchcommodity.batch._run import batch as batch
from torchcommodity.batch._source import holds_panels as holds_panels

__all__ = [
    "Summary",
    "batch",
    "holds_panels",
]
