"""A trained model becomes smaller, faster, or one file that answers by itself."""

from torchcommodity.optimize.about import About as About
from torchcommodity.optimize.artefact import Artefact as Artefact
from torchcommodity.optimize.export import export as export

__all__ = ["About", "Artefact", "export"]
