"""Builds of native operators on LibTorch's stable ABI: ahead of time, and just in time."""

from torchcommodity.opkit._build.compiler import BuildError as BuildError
from torchcommodity.opkit._build.extension import extension as extension
from torchcommodity.opkit._build.load import load as load
from torchcommodity.opkit._build.load import load_inline as load_inline

__all__ = ["BuildError", "extension", "load", "load_inline"]
