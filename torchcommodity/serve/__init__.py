"""Serving of exported artifacts: predictions over HTTP, and a dashboard in the browser."""

from torchcommodity.serve import dashboard as dashboard
from torchcommodity.serve import http as http

__all__ = ["dashboard", "http"]
