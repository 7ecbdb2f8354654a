"""Prices come in: files, publishers and the store, as a `Panel` with provenance; and walk-forward windows over it."""

from torchcommodity.data import _extra as _extra
from torchcommodity.data.assemble import Loaded as Loaded
from torchcommodity.data.contracts import CONTRACTS as CONTRACTS
from torchcommodity.data.contracts import Contract as Contract
from torchcommodity.data.curve import Curve as Curve
from torchcommodity.data.eia import eia as eia
from torchcommodity.data.embedded import embedded as embedded
from torchcommodity.data.errors import TREATMENTS as TREATMENTS
from torchcommodity.data.errors import DataError as DataError
from torchcommodity.data.errors import Finding as Finding
from torchcommodity.data.files import read as read
from torchcommodity.data.files import read_curve as read_curve
from torchcommodity.data.fred import fred as fred
from torchcommodity.data.http import Http as Http
from torchcommodity.data.inspect import inspect as inspect
from torchcommodity.data.load import load as load
from torchcommodity.data.panel import Panel as Panel
from torchcommodity.data.panel import Provenance as Provenance
from torchcommodity.data.rolls import roll_months as roll_months
from torchcommodity.data.store import Store as Store
from torchcommodity.data.store import default_store as default_store
from torchcommodity.data.synthetic import SyntheticTensor as SyntheticTensor
from torchcommodity.data.synthetic import is_synthetic as is_synthetic
from torchcommodity.data.synthetic import refuse_synthetic as refuse_synthetic
from torchcommodity.data.windows import Block as Block
from torchcommodity.data.windows import hold_out as hold_out
from torchcommodity.data.windows import walk_forward as walk_forward

__all__ = [
    "CONTRACTS",
    "TREATMENTS",
    "Block",
    "Contract",
    "Curve",
    "DataError",
    "Finding",
    "Http",
    "Loaded",
    "Panel",
    "Provenance",
    "Store",
    "SyntheticTensor",
    "default_store",
    "eia",
    "embedded",
    "fred",
    "hold_out",
    "inspect",
    "is_synthetic",
    "load",
    "read",
    "read_curve",
    "refuse_synthetic",
    "roll_months",
    "walk_forward",
]
