"""Layers over `ops`: they own parameters and settings."""

from torchcommodity.nn.rolling_correlation import RollingCorrelation as RollingCorrelation

__all__ = ["RollingCorrelation"]
