"""Imported first: says in one sentence what to install where the `serve` extra is missing."""

from importlib.util import find_spec

for _package in ("fastapi", "uvicorn", "pydantic", "prometheus_client"):
    if find_spec(_package) is None:
        raise ImportError(
            f"torchcommodity.serve.http needs {_package}, which is not installed: pip install 'torchcommodity[serve]'",
            name=_package,
        )
