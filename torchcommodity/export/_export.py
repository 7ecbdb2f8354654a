"""Export a fitted forecaster to one file that takes raw prices and returns quantiles."""

from pathlib import Path

import torch

from torchcommodity.data import write_atomic
from torchcommodity.export._checksum import append_onnx_checksum, append_zip_checksum
from torchcommodity.export._export_program import export_program
from torchcommodity.export._formats import aoti, onnx, pt2
from torchcommodity.export._metadata import FORMATS, Format, Metadata, make_metadata
from torchcommodity.forecast import Forecaster


@torch.no_grad()
def export(forecaster: Forecaster, path: str | Path, format: Format = "pt2", *, without_curve: bool = False) -> Path:
    """Write a forecaster as one artifact: prices (B, T, N) and days (B, T) in, quantiles (B, H, N, Q) out.

    The graph contains all computations on raw prices: operators, scale, network and the roll rules of the exchanges.
    Batch size and number of rows are dynamic. The file contains metadata (symbols, units, horizons, levels, sources)
    and a checksum.

    Args:
        forecaster: result of `forecast.fit` or `Forecaster.load`.
        path: file to write, atomically.
        format: `pt2`, the graph of `torch.export`, bit for bit `forecast.predict`; `aoti`, machine code for this
            processor; `onnx`, for onnxruntime without torch.
        without_curve: export a forecaster that was fitted with a futures curve. Artifacts do not take a curve: expected
            roll gaps are then the past ones instead of those of the curve.

    Returns:
        The path.

    Raises:
        ValueError: an unknown format, a forecaster with a curve and `without_curve=False`, or one of series that roll
            on other days than by the exchange's rule.

    Example:
        >>> from torchcommodity import data, export, forecast
        >>> fitted = forecast.fit(data.embedded(["WTI"]).between("2012-01-01", "2018-12-31"))
        >>> path = export.export(fitted, getfixture("tmp_path") / "wti.pt2")
        >>> metadata = export.Artifact.load(path).metadata
        >>> metadata.symbols, metadata.trained_through
        (('WTI',), '2018-12-28')
    """
    if format not in FORMATS:
        raise ValueError(f"export: format must be one of {', '.join(FORMATS)}; got {format!r}")
    if forecaster.record.curve and not without_curve:
        raise ValueError(
            "export: the forecaster was fitted with a futures curve, which an artifact does not take; pass "
            "without_curve=True (--without-curve) to expect the past roll gaps instead"
        )
    return write_atomic(path, _to_bytes(forecaster, make_metadata(forecaster, format)))


def _to_bytes(forecaster: Forecaster, metadata: Metadata) -> bytes:
    program = export_program(forecaster, metadata.min_rows)
    if metadata.format == "onnx":
        return append_onnx_checksum(onnx.to_bytes(program, metadata))
    return append_zip_checksum((aoti if metadata.format == "aoti" else pt2).to_bytes(program, metadata))
