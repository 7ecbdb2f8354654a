"""Stands in for the page until it is merged."""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter

from torchcommodity.optimize import About


def router(about: About, dashboard: Callable[[], dict[str, Any]]) -> APIRouter:
    """Nothing yet."""
    return APIRouter()
