"""Imported first: says in one sentence what to install where the `forecast` extra is missing."""

from importlib.util import find_spec

for _package in ("pandas", "pyarrow", "duckdb", "requests", "arch", "pandas_market_calendars"):
    if find_spec(_package) is None:
        raise ImportError(
            f"torchcommodity.data needs {_package}, which is not installed: pip install torchcommodity[forecast]",
            name=_package,
        )
