"""torchcommodity: prices in, calibrated forecasts out, one differentiable PyTorch graph.

Packages are imported on first use: `import torchcommodity as tc; tc.losses.pinball`. So are the everyday names
`tc.read`, `tc.Panel`, `tc.fit`, `tc.predict`, `tc.backtest` and `tc.Forecaster`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchcommodity import batch as batch
    from torchcommodity import cli as cli
    from torchcommodity import data as data
    from torchcommodity import export as export
    from torchcommodity import forecast as forecast
    from torchcommodity import losses as losses
    from torchcommodity import models as models
    from torchcommodity import nn as nn
    from torchcommodity import opkit as opkit
    from torchcommodity import ops as ops
    from torchcommodity import optimize as optimize
    from torchcommodity import portfolio as portfolio
    from torchcommodity import report as report
    from torchcommodity import scenarios as scenarios
    from torchcommodity import serve as serve
    from torchcommodity import training as training
    from torchcommodity.data import Panel as Panel
    from torchcommodity.data import read as read
    from torchcommodity.forecast import Forecaster as Forecaster
    from torchcommodity.forecast import backtest as backtest
    from torchcommodity.forecast import fit as fit
    from torchcommodity.forecast import predict as predict

__version__ = "0.1.0"

__all__ = [
    "Forecaster",
    "Panel",
    "__version__",
    "backtest",
    "batch",
    "cli",
    "data",
    "export",
    "fit",
    "forecast",
    "losses",
    "models",
    "nn",
    "opkit",
    "ops",
    "optimize",
    "portfolio",
    "predict",
    "read",
    "report",
    "scenarios",
    "serve",
    "training",
]

_EVERYDAY = {
    "Panel": "data",
    "read": "data",
    "Forecaster": "forecast",
    "backtest": "forecast",
    "fit": "forecast",
    "predict": "forecast",
}


def __getattr__(name: str) -> Any:
    if name in _EVERYDAY:
        return getattr(import_module(f"{__name__}.{_EVERYDAY[name]}"), name)
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
