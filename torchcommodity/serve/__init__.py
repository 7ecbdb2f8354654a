"""Forecasts of an exported artifact in production: over `http`, and on the `dashboard` that people look at."""

from torchcommodity.serve import dashboard as dashboard
from torchcommodity.serve import http as http

__all__ = ["dashboard", "http"]
