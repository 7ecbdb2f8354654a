"""One file that forecasts by itself: a fitted forecaster as PT2, AOTInductor or ONNX, with metadata and checksum."""

from torchcommodity.export._artifact import Artifact as Artifact
from torchcommodity.export._export import export as export
from torchcommodity.export._metadata import Metadata as Metadata

__all__ = [
    "Artifact",
    "Metadata",
    "export",
]
