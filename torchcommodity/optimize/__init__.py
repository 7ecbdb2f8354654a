"""A trained forecaster becomes smaller or faster, and what that cost is measured: one verb a file."""

from torchcommodity.optimize.profile import Profile as Profile
from torchcommodity.optimize.profile import profile as profile

__all__ = ["Profile", "profile"]
