"""Batch forecasts: any number of panels from DuckDB or Parquet, results in DuckDB or Parquet."""

from torchcommodity.batch._results import Run as Run
from torchcommodity.batch._run import Summary as Summary
from torchcommodity.batch._run import run as run
from torchcommodity.batch._sources import is_panel_table as is_panel_table

__all__ = [
    "Run",
    "Summary",
    "is_panel_table",
    "run",
]
