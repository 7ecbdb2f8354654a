"""torchcommodity: prices in, calibrated forecasts out, one differentiable PyTorch graph."""

from torchcommodity import nn as nn
from torchcommodity import opkit as opkit
from torchcommodity import ops as ops

__version__ = "0.1.0"
__all__ = ["__version__", "nn", "opkit", "ops"]
