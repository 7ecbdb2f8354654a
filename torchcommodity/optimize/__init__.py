"""A trained forecaster becomes smaller, faster, or one file that answers by itself: one verb a file."""

from torchcommodity.optimize._benchmark import ALL as ALL
from torchcommodity.optimize._benchmark import ORIGINAL as ORIGINAL
from torchcommodity.optimize._benchmark import Row as Row
from torchcommodity.optimize._benchmark import steps as steps
from torchcommodity.optimize._benchmark import table as table
from torchcommodity.optimize._benchmark import verdict as verdict
from torchcommodity.optimize._compile import Compiled as Compiled
from torchcommodity.optimize._compile import compile as compile
from torchcommodity.optimize._distill import distill as distill
from torchcommodity.optimize._inputs import batch as batch
from torchcommodity.optimize._latency import Gain as Gain
from torchcommodity.optimize._latency import gain as gain
from torchcommodity.optimize._memory_format import channels_last as channels_last
from torchcommodity.optimize._profile import Profile as Profile
from torchcommodity.optimize._profile import profile as profile
from torchcommodity.optimize._prune import Importance as Importance
from torchcommodity.optimize._prune import fine_tune as fine_tune
from torchcommodity.optimize._prune import importance as importance
from torchcommodity.optimize._prune import prune_inputs as prune_inputs
from torchcommodity.optimize._prune import prune_rows as prune_rows
from torchcommodity.optimize._prune import prune_units as prune_units
from torchcommodity.optimize._prune import prune_weights as prune_weights
from torchcommodity.optimize._quantize import mixed_precision as mixed_precision
from torchcommodity.optimize._quantize import quantize as quantize
from torchcommodity.optimize._size import Size as Size
from torchcommodity.optimize._size import size as size

__all__ = [
    "ALL",
    "ORIGINAL",
    "Compiled",
    "Gain",
    "Importance",
    "Profile",
    "Row",
    "Size",
    "batch",
    "channels_last",
    "compile",
    "distill",
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
