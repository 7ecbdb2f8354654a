"""A fitted forecaster leaves as one file that takes raw prices and gives quantiles."""

from pathlib import Path

import torch

from torchcommodity.data import write_atomic
from torchcommodity.export import _checksum as seal
from torchcommodity.export._formats import aoti, onnx, pt2
from torchcommodity.export._metadata import FORMATS, Metadata, about
from torchcommodity.export._program import program
from torchcommodity.forecast import Forecaster


@torch.no_grad()
def export(forecaster: Forecaster, path: str | Path, format: str = "pt2", *, without_curve: bool = False) -> Path:
    """Write a forecaster as one artifact: prices (B, T, N) and their days (B, T) in, quantiles (B, H, N, Q) out.

    The graph holds everything from raw prices on: operators, scale, network, the exchanges' roll rules. Any batch, any
    number of rows. The file names its symbols, units, horizons, levels and sources, and ends with a checksum.

    Args:
        forecaster: of `forecast.fit` or `Forecaster.load`.
        path: the file to write; it appears whole or not at all.
        format: `pt2`, the graph of `torch.export`, the bits of `forecast.predict`; `aoti`, machine code for this
            processor; `onnx`, for onnxruntime without torch.
        without_curve: an artifact reads no curve of nearby contracts. A forecaster that was fitted with one is only
            exported if this is said: its roll gaps are then those of the past.

    Returns:
        the path.

    Raises:
        ValueError: an unknown format, or a forecaster with a curve and no `without_curve`.

    Example:
        >>> from torchcommodity import data, forecast, optimize
        >>> fitted = forecast.fit(data.embedded()["WTI"].between("2012-01-01", "2018-12-31"))
        >>> folder = getfixture("tmp_path")
        >>> artifact = optimize.Artifact.load(optimize.export(fitted, folder / "wti.pt2"))
        >>> artifact.about.symbols, artifact.about.trained_through
        (('WTI',), '2018-12-31')
    """
    if format not in FORMATS:
        raise ValueError(f"export: format must be one of {', '.join(FORMATS)}; got {format!r}")
    if forecaster.record.curve and not without_curve:
        raise ValueError(
            "export: the forecaster was fitted with the curve of nearby contracts, which an artifact does not read; "
            "say without_curve (--without-curve) to export it with the past roll gaps in its place"
        )
    return write_atomic(path, _packed(forecaster, about(forecaster, format)))


def _packed(forecaster: Forecaster, facts: Metadata) -> bytes:
    graph = program(forecaster, facts.least_rows)
    if facts.format == "onnx":
        return seal.sealed_onnx(onnx.to_bytes(graph, facts))
    return seal.sealed_zip((aoti if facts.format == "aoti" else pt2).to_bytes(graph, facts))
