"""A trained forecaster becomes smaller, faster, or one file that answers by itself: one verb a file."""

from torchcommodity.optimize.about import About as About
from torchcommodity.optimize.artefact import Artefact as Artefact
from torchcommodity.optimize.compile import Compiled as Compiled
from torchcommodity.optimize.compile import compile as compile
from torchcommodity.optimize.distill import distill as distill
from torchcommodity.optimize.export import export as export
from torchcommodity.optimize.latency import Gain as Gain
from torchcommodity.optimize.latency import gain as gain
from torchcommodity.optimize.layout import channels_last as channels_last
from torchcommodity.optimize.profile import Profile as Profile
from torchcommodity.optimize.profile import profile as profile
from torchcommodity.optimize.prune import Importance as Importance
from torchcommodity.optimize.prune import fine_tune as fine_tune
from torchcommodity.optimize.prune import importance as importance
from torchcommodity.optimize.prune import prune_inputs as prune_inputs
from torchcommodity.optimize.prune import prune_rows as prune_rows
from torchcommodity.optimize.prune import prune_units as prune_units
from torchcommodity.optimize.prune import prune_weights as prune_weights
from torchcommodity.optimize.quantize import mixed_precision as mixed_precision
from torchcommodity.optimize.quantize import quantize as quantize
from torchcommodity.optimize.size import Size as Size
from torchcommodity.optimize.size import size as size
from torchcommodity.optimize.table import Row as Row
from torchcommodity.optimize.table import steps as steps
from torchcommodity.optimize.table import table as table
from torchcommodity.optimize.table import verdict as verdict

__all__ = [
    "About",
    "Artefact",
    "Compiled",
    "Gain",
    "Importance",
    "Profile",
    "Row",
    "Size",
    "channels_last",
    "compile",
    "distill",
    "export",
    "fine_tune",
    "gain",
    "importance",
    "mixed_precision",
    "profile",
    "prune_inputs",
    "prune_rows",
    "prune_units",
    "prune_weights",
    "quantize",
    "size",
    "steps",
    "table",
    "verdict",
]
