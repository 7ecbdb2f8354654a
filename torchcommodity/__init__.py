"""torchcommodity: prices in, calibrated forecasts out, one differentiable PyTorch graph.

Packages are imported on first use: `import torchcommodity as tc; tc.losses.pinball`. So are the everyday names
`tc.read`, `tc.to_panel`, `tc.spread`, `tc.Panel`, `tc.fit`, `tc.predict`, `tc.backtest` and `tc.Forecaster`.
"""

from typing import TYPE_CHECKING

from torchcommodity import _lazy

if TYPE_CHECKING:
    from torchcommodity import batch as batch
    from torchcommodity import charts as charts
    from torchcommodity import cli as cli
    from torchcommodity import data as data
    from torchcommodity import export as export
    from torchcommodity import forecast as forecast
    from torchcommodity import losses as losses
    from torchcommodity import models as models
    from torchcommodity import nn as nn
    from torchcommodity import ops as ops
    from torchcommodity import optimize as optimize
    from torchcommodity import portfolio as portfolio
    from torchcommodity import report as report
    from torchcommodity import risk as risk
    from torchcommodity import scenarios as scenarios
    from torchcommodity import scoreboard as scoreboard
    from torchcommodity import serve as serve
    from torchcommodity import training as training
    from torchcommodity.data import Panel as Panel
    from torchcommodity.data import read as read
    from torchcommodity.data import spread as spread
    from torchcommodity.data import to_panel as to_panel
    from torchcommodity.forecast import Forecaster as Forecaster
    from torchcommodity.forecast import backtest as backtest
    from torchcommodity.forecast import fit as fit
    from torchcommodity.forecast import predict as predict

__version__ = "0.1.0"

_MODULES = {
    "": [
        "__version__", "batch", "charts", "cli", "data", "export", "forecast", "losses", "models", "nn",
        "ops", "optimize", "portfolio", "report", "risk", "scenarios", "scoreboard", "serve", "training"
    ],
    "data": ["Panel", "read", "spread", "to_panel"],
    "forecast": ["Forecaster", "backtest", "fit", "predict"],
}  # fmt: skip

if not TYPE_CHECKING:  # type checkers would allow any name
    __all__, __getattr__, __dir__ = _lazy.lazy_names(__name__, _MODULES)
