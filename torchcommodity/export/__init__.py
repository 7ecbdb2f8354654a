"""Export a fitted forecaster to one file (PT2, AOTInductor or ONNX) with metadata and checksum."""

from torchcommodity._choices import ArtifactFormat as Format
from torchcommodity.export._artifact import Artifact as Artifact
from torchcommodity.export._artifact import artifact_findings as artifact_findings
from torchcommodity.export._artifact import panel_inputs as panel_inputs
from torchcommodity.export._artifact import panel_location as panel_location
from torchcommodity.export._export import export as export
from torchcommodity.export._export_program import RawPriceForecaster as RawPriceForecaster
from torchcommodity.export._metadata import Metadata as Metadata
from torchcommodity.export._metadata import make_metadata as make_metadata

__all__ = [
    "Artifact",
    "Format",
    "Metadata",
    "RawPriceForecaster",
    "artifact_findings",
    "export",
    "make_metadata",
    "panel_inputs",
    "panel_location",
]
