"""Export a fitted forecaster to one file that takes raw prices and returns quantiles."""

from pathlib import Path

import torch

from torch_opkit.arguments import operation
from torchcommodity._choices import ARTIFACT_ENDINGS, ArtifactFormat, artifact_format
from torchcommodity.data import check_publishers, is_strict, write_atomic
from torchcommodity.export._artifact import Artifact
from torchcommodity.export._compatibility import check_format
from torchcommodity.export._export_program import RawPriceForecaster, trace
from torchcommodity.export._formats import aoti, onnx, pt2
from torchcommodity.export._metadata import FORMATS, make_metadata
from torchcommodity.forecast import Forecaster
from torchcommodity.training import Progress, check_no_look_ahead, one_thread, resolve_device

TOLERANCE: dict[ArtifactFormat, float] = {"pt2": 0.0, "aoti": 1e-5, "onnx": 1e-5}  # of a log-return
GPU_TOLERANCE = 1e-5
NETWORK_TOLERANCE = 1e-6  # of networks other than those of the package
STAGE: dict[ArtifactFormat, str] = {
    "pt2": "writing the graph",
    "aoti": "compiling the graph",
    "onnx": "converting the graph",
}


@operation("export")
@torch.no_grad()
def export(
    forecaster: Forecaster,
    path: str | Path,
    format: ArtifactFormat | None = None,
    *,
    without_curve: bool = False,
    device: str | torch.device = "cpu",
    progress: Progress | None = None,
    strict: bool | None = None,
) -> Path:
    """Write a forecaster as one artifact: prices (B, T, N) and days (B, T) in, quantiles (B, H, N, Q) out.

    The graph contains all computations on raw prices: operators, scale, network and the roll rules of the exchanges.
    Batch size and number of rows are dynamic. The file contains metadata (symbols, units, horizons, levels, sources)
    and a checksum. It is read back and compared with the forecaster before it is written.

    Args:
        forecaster: result of `forecast.fit` or `Forecaster.load`.
        path: file to write, atomically.
        format: `pt2`, the graph of `torch.export`, bit for bit `forecast.predict`; `aoti`, machine code for this
            processor; `onnx`, for onnxruntime without torch. Default: by the ending of the path, `.pt2`, `.aoti.pt2` or
            `.onnx`; `pt2` for a path without an ending.
        without_curve: export a forecaster that was fitted with a futures curve. Artifacts do not take a curve: expected
            roll gaps are then the past ones instead of those of the curve.
        device: device to compile for (`aoti`) and to compare with the forecaster on, such as "cuda". A `pt2` file is
            the same for all devices: `Artifact.load` takes the one on which it computes.
        progress: called with the number of finished stages, their total number and the name of the current one.
        strict: whether training prices without a publisher are an error; default: if the environment variable
            TORCHCOMMODITY_STRICT is 1.

    Returns:
        The path.

    Raises:
        TypeError: another module than a Forecaster.
        FileNotFoundError: no folder for the file, or the path is a folder.
        ValueError: an unknown format or, without one, an unknown ending; a forecaster with covariates, one with a curve
            and `without_curve=False`, or one of series that roll on other days than by the exchange's rule; no C++
            compiler for `aoti`; this machine has no such device, or the format does not run on it; torch cannot export
            the model to this format, or the result differs from the forecaster; a network of the user's looks ahead. No
            file is written.
        ImportError: `onnx` without the packages of the extra `export`.

    Example:
        >>> from torchcommodity import data, export, forecast
        >>> fitted = forecast.fit(data.embedded(["WTI"]).between("2012-01-01", "2018-12-31"))
        >>> path = export.export(fitted, getfixture("tmp_path") / "wti.pt2")
        >>> metadata = export.Artifact.load(path).metadata
        >>> metadata.symbols, metadata.trained_through
        (('WTI',), '2018-12-28')
    """
    module: object = forecaster  # a caller may pass anything
    if not isinstance(module, Forecaster):
        rule = "forecaster must be a Forecaster, the result of forecast.fit or Forecaster.load"
        raise TypeError(f"export: {rule}; got {type(module).__name__}")
    if format is None:
        format = artifact_format(Path(path).name)
        if format is None and Path(path).suffix:
            rule = f"path must end with one of {', '.join(ARTIFACT_ENDINGS.values())} if no format is given"
            raise ValueError(f"export: {rule}; got {str(path)!r}; pass format={FORMATS[0]!r} to use this name")
        format = format or "pt2"
    if not Path(path).absolute().parent.is_dir() or Path(path).is_dir():  # known before the model is traced
        raise FileNotFoundError(f"export: path must be a file in a folder that exists; got {str(path)!r}")
    if format not in FORMATS:
        raise ValueError(f"export: format must be one of {', '.join(FORMATS)}; got {format!r}")
    if forecaster.record.curve and not without_curve:
        raise ValueError(
            "export: the forecaster was fitted with a futures curve, which an artifact does not take; pass "
            "without_curve=True (--without-curve) to expect the past roll gaps instead"
        )
    if is_strict(strict):
        check_publishers("export", forecaster.sources)
    target = resolve_device(device)
    check_format(format, target)
    writer = {"pt2": pt2, "aoti": aoti, "onnx": onnx}[format]
    writer.check_available()
    metadata, forecaster = make_metadata(forecaster, format), forecaster.to("cpu")
    graph = RawPriceForecaster(forecaster)
    check_no_look_ahead(forecaster.model, graph.sample_history(metadata.min_rows + 20))
    report = progress or (lambda done, total, description: None)
    try:
        report(0, 4, "tracing the model")
        program = trace(graph, metadata.min_rows)
        report(1, 4, STAGE[format])
        content = writer.to_bytes(program, metadata, target)
        report(2, 4, "comparing with the forecaster")
        _compare(Artifact._from_bytes(content, device=target), graph)
    except Exception as error:  # torch's exporters raise errors of any type
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        others = " or ".join(repr(name) for name in FORMATS if name != format)
        raise ValueError(
            f"export: {metadata.model} cannot be exported to format {format!r} with torch {torch.__version__} "
            f"({reason}); no file was written; use format {others}"
        ) from error
    report(3, 4, "saving the file")
    return write_atomic(path, content)


@one_thread()
def _compare(artifact: Artifact, graph: RawPriceForecaster) -> None:
    """Raise ValueError if an artifact differs from the forecaster at another batch size and number of rows."""
    inputs = graph.sample_inputs(3, artifact.metadata.min_rows + 20)
    difference = (artifact(*inputs) - graph(*inputs)).abs().max().item()
    tolerance = TOLERANCE[artifact.metadata.format] if artifact.device.type == "cpu" else GPU_TOLERANCE
    if graph.model.lookback is not None:  # the bits of a layer of torch may depend on the size of a batch
        tolerance = max(tolerance, NETWORK_TOLERANCE)
    if not difference <= tolerance:  # also NaN
        raise ValueError(f"its results differ from the forecaster's by up to {difference:.1e} of a log-return")
