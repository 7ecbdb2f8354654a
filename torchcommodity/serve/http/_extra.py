"""Imported first: a missing `serve` extra is an ImportError that names the package to install."""

from importlib.util import find_spec

for _package in ("fastapi", "fastapi_offline", "uvicorn", "httptools", "pydantic", "prometheus_client"):
    if find_spec(_package) is None:
        raise ImportError(
            f"torchcommodity.serve.http needs {_package}, which is not installed: pip install 'torchcommodity[serve]'",
            name=_package,
        )
