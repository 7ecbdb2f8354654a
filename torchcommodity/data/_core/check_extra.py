"""Imported before the other modules: where the `forecast` extra is missing, the error says what to install."""

from importlib.util import find_spec

for _package in ("pandas", "pyarrow", "duckdb", "requests", "arch", "pandas_market_calendars"):
    if find_spec(_package) is None:
        raise ImportError(
            f"torchcommodity.data needs {_package}, which is not installed: pip install 'torchcommodity[forecast]'",
            name=_package,
        )
