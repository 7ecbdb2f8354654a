"""Exported forecaster: verify, load and call a file written by `export`."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_opkit.arguments import current_operation, operation
from torchcommodity.data import Finding, Panel, add_curve, add_references, compare_with_training, to_panel
from torchcommodity.export._checksum import verify
from torchcommodity.export._compatibility import (
    CPU,
    OtherTorchError,
    UntrustedCodeError,
    WrongDeviceError,
    check_format,
    explain_other_torch,
)
from torchcommodity.export._export_program import RawPriceForecaster, sample_inputs
from torchcommodity.export._formats import aoti, onnx, pt2
from torchcommodity.export._metadata import Metadata, make_metadata, parse_metadata
from torchcommodity.export._roll_months import RollMonths
from torchcommodity.forecast import (
    Forecast,
    Forecaster,
    Location,
    check_warmup,
    explain_location,
    input_findings,
    signed_price_findings,
)
from torchcommodity.models import ModelInputs
from torchcommodity.training import nearby_closes, one_thread, panel_bars, reference_prices, resolve_device

ZIP_MAGIC = b"PK\x03\x04"
MAX_REASON = 300  # characters of an error of torch or onnxruntime


@dataclass(frozen=True)
class Artifact:
    """A forecaster exported to one file, in any format of `export`. A pickled copy forecasts the same bits.

    Loading does not unpickle. A `pt2` file contains no code: a graph that names anything but tensor operators is
    rejected. An `aoti` file contains machine code: load it only from a source that you trust.
    """

    metadata: Metadata
    forward: Callable[[Tensor, Tensor], Tensor]
    origin: bytes | Forecaster | None = field(
        default=None, repr=False, compare=False
    )  # from which a pickle is restored
    device: torch.device = CPU  # on which it computes

    @classmethod
    @operation("Artifact.load")
    def load(cls, path: str | Path, device: str | torch.device = "cpu", *, trusted: bool = False) -> "Artifact":
        """Read a file written by `export`; the format is detected from its content.

        Args:
            path: the file.
            device: device on which the artifact computes, such as "cuda" or "cuda:1", or "auto". A `pt2` file runs on
                any device with float64, an `aoti` file on the kind of device that it was compiled for, an `onnx` file
                on the CPU.
            trusted: load an `aoti` file. It is machine code, which can do all that your user can do: load it from
                somebody whose programs you would run. The other formats hold data only.

        Raises:
            ValueError: an `aoti` file without `trusted`; the file is damaged, truncated, or was not written by
                `export`; another version of torch wrote it, whose graph this one cannot read; this machine has no such
                device, or the file does not run on it.
        """
        target = resolve_device(device)
        return cls._from_bytes(Path(path).read_bytes(), str(path), target, trusted)

    @classmethod
    def _from_bytes(
        cls, content: bytes, label: str = "content", device: torch.device = CPU, trusted: bool = True
    ) -> "Artifact":
        sha256 = verify(content, label)
        try:
            with operation("Artifact.load"):  # not a decorator: Ray pickles this function by value
                if not content.startswith(ZIP_MAGIC):
                    check_format("onnx", device)
                    text, forward = onnx.from_bytes(content)
                    return _check_call(cls(parse_metadata(text, sha256), forward, content))
                records = pt2.read_records(content)
                metadata = parse_metadata(records[pt2.METADATA].decode(), sha256)
                check_format(metadata.format, device)
                with explain_other_torch(metadata.torch):
                    if metadata.format != "aoti":
                        forward = pt2.from_records(records, metadata, device)
                    elif trusted:
                        forward = aoti.from_bytes(content, device)
                    else:
                        raise UntrustedCodeError(
                            f"Artifact.load: {label} is machine code, which can do all that your user can do; if you "
                            "trust who made it, load it with trusted=True (--trusted)"
                        )
                return _check_call(cls(metadata, forward, content, device))
        except (WrongDeviceError, UntrustedCodeError):
            raise
        except OtherTorchError as error:
            raise ValueError(f"Artifact.load: {label} {error}") from error
        except ImportError:
            raise
        except Exception as error:  # a file may raise anything inside torch, onnxruntime or zipfile
            reason = str(error).strip().partition("\n")[0][:MAX_REASON] or type(error).__name__
            raise ValueError(f"Artifact.load: {label} must be an artifact written by export; got {reason}") from error

    @classmethod
    def from_forecaster(cls, forecaster: Forecaster) -> "Artifact":
        """Build an artifact without a file, equal bit for bit to that of the `pt2` file.

        Raises:
            ValueError: the forecaster was fitted on futures with a curve, which an artifact does not take, or on series
                that roll on other days than by the exchange's rule; or it is on a device without float64.
        """
        with operation("Artifact.from_forecaster"):
            check_format("pt2", forecaster.device)
        if forecaster.record.curve:
            raise ValueError(
                "Artifact: the forecaster was fitted with a futures curve, which an artifact does not take; "
                "export it with without_curve=True (--without-curve)"
            )
        sha256 = hashlib.sha256(forecaster.to_bytes()).hexdigest()
        metadata = replace(make_metadata(forecaster, "pt2"), sha256=sha256)
        return cls(metadata, RawPriceForecaster(forecaster).to(forecaster.device), forecaster, forecaster.device)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the content of the file, or the forecaster: graphs, sessions and machine code cannot be pickled."""
        if isinstance(self.origin, bytes):
            return Artifact._from_bytes, (self.origin, "content", self.device)
        if self.origin is None:
            return Artifact, (self.metadata, self.forward, None, self.device)
        return Artifact.from_forecaster, (self.origin,)

    @torch.no_grad()
    def __call__(self, prices: Tensor, days: Tensor) -> Tensor:
        """Quantiles (B, H, N, Q) float64 of the cumulative log-return after the last row.

        Of a symbol with a `metadata.scale` S, whose prices may be zero or negative, quantiles of the change of
        asinh(P / S): a price is S sinh(asinh(P / S) + change). `predict` returns prices.

        Args:
            prices: (B, T, C) float64, the columns of `metadata.columns`: symbols in `metadata.units`, references,
                closes of curves, and open, high and low of `metadata.ranges`. NaN is missing; zero and negative prices
                count as missing, as in training. A row without a bar counts with its close.
            days: (B, T) int64, days since 1970-01-01, strictly increasing along T; rows are trading days.

        A symbol with at most `metadata.warmup` positive prices is NaN. The forecast starts from its last positive
        price.

        Inputs are copied to the device of the artifact, and the quantiles back to that of the prices.

        Raises:
            ValueError, TypeError: wrong shapes or dtypes, too few rows, an infinite price, or days that do not increase
                or are outside `metadata.calendar`.
        """
        check_inputs(self.metadata, prices, days)
        inputs = (x.contiguous().to(self.device) for x in (prices, days))
        return self.forward(*inputs).to(prices.device)

    @operation("predict")
    @one_thread()
    def predict(self, prices: Any, references: Any = None, curve: Any = None) -> Forecast:
        """Forecast from the last row of `prices`, as `Forecaster.predict` does; in `pt2` format, the same bits.

        Args:
            prices: anything that `data.to_panel` takes, with at least the symbols of the artifact.
            references: prices of the references of the artifact, as for `Forecaster.predict`.
            curve: closes of nearby contracts for its spot prices, likewise.

        Raises:
            TypeError: `prices` has another type.
            ValueError: a symbol is missing, has another contract, no positive price, or too few prices; a date is still
                to come, see `data.latest_date`. The graph itself cannot know today.

        Example:
            >>> from torchcommodity import data, export, forecast
            >>> forecaster = forecast.fit(data.embedded(["WTI"]).between("2012-01-01", "2018-12-31"))
            >>> artifact = export.Artifact.from_forecaster(forecaster)
            >>> artifact.predict(data.embedded().between(None, "2019-01-03"))
            Forecast(WTI; from 2019-01-03; horizons 5, 21, 63, 126; 19 levels)
        """
        metadata, panel = self.metadata, self._align_panel(prices, references, curve)
        try:
            log_returns = self(*panel_inputs(metadata, panel))[0]
        except ValueError as error:
            raise ValueError(f"predict: {error}") from None
        panel = replace(panel, findings=artifact_findings(metadata, panel))
        return Forecast.from_log_returns(
            panel, metadata.horizons, metadata.levels, log_returns, scale=metadata.price_scale
        )

    @operation("location")
    @one_thread()
    def location(self, prices: Any, references: Any = None, curve: Any = None) -> Location:
        """What moves the median from the last row of `prices`, as `Forecaster.location` says it.

        Args:
            prices: as for `predict`.
            references: as for `predict`.
            curve: as for `predict`.

        Raises:
            ValueError: an earlier version wrote the file, or as for `predict`.

        Example:
            >>> from torchcommodity import data, export, forecast
            >>> prices = data.embedded().between(None, "2018-12-31")
            >>> artifact = export.Artifact.from_forecaster(forecast.fit(prices))
            >>> print(artifact.location(prices).sentence("HENRY_HUB", 63))
            3 months: season: -1.0 %
        """
        location = panel_location(self.metadata, self._align_panel(prices, references, curve))
        if location is None:
            rule = "the artifact must record what moves its medians, as this version writes it"
            raise ValueError(f"location: {rule}; got one of version {self.metadata.version}: export it again")
        return location

    def _align_panel(self, prices: Any, references: Any, curve: Any) -> Panel:
        metadata = self.metadata
        panel = metadata.align_panel(add_references(to_panel(prices), references))
        if curve is not None:
            if not metadata.closes:
                raise ValueError(f"{current_operation()}: curve must be None: the artifact takes no curve; got one")
            panel = add_curve(panel, curve, dict(zip(metadata.symbols, metadata.curve_of)))
        try:
            check_warmup(panel.values.plain(), panel.symbols, metadata.warmup, metadata.price_scale)
        except ValueError as error:
            raise ValueError(f"{current_operation()}: {error}") from None
        return panel

    @property
    def symbols(self) -> tuple[str, ...]:
        """Forecast symbols, in the order of the columns."""
        return self.metadata.symbols


@torch.no_grad()
def _check_call(artifact: Artifact) -> Artifact:
    """The artifact; ValueError unless it returns what its metadata say: a shape, increasing numbers, twice the same."""
    metadata = artifact.metadata
    inputs = sample_inputs(len(metadata.columns), 1, metadata.min_rows + 20)
    first, second = artifact(*inputs), artifact(*inputs)
    expected = (1, len(metadata.horizons), len(metadata.symbols), len(metadata.levels))
    if first.shape != expected or first.dtype != torch.float64:
        raise ValueError(f"a graph that does not return quantiles {expected} float64, but {tuple(first.shape)}")
    if not (first.diff(dim=-1) >= 0).all() or not first.isfinite().all():
        raise ValueError("a graph whose quantiles are not finite and increasing")
    if not torch.allclose(first, second, rtol=1e-6):
        raise ValueError("a graph that returns other quantiles when it is called again")
    return artifact


def panel_inputs(metadata: Metadata, panel: Panel) -> tuple[Tensor, Tensor]:  # (1, T, C), (1, T)
    """Arguments of an artifact from an aligned panel: prices of symbols and references, closes, bars, and days."""
    prices = panel.values.plain().detach()
    own = [metadata.symbols.index(symbol) for symbol in metadata.ranges]
    others = reference_prices(panel, metadata.references), nearby_closes(panel, metadata.closes)
    prices = torch.cat([prices, *others, panel_bars(panel)[:, own].flatten(1)], 1)
    return prices[None], torch.from_numpy(panel.dates.astype(np.int64))[None]


def artifact_findings(metadata: Metadata, panel: Panel) -> tuple[Finding, ...]:
    """Findings of an aligned panel, with what is unlike the training prices, as those of `Forecaster.predict`."""
    prices = panel.values.plain()
    findings = signed_price_findings(panel.findings, prices, panel.dates, metadata.symbols, metadata.price_scale)
    unlike = compare_with_training(panel, metadata.training_prices, metadata.signed)
    return (*findings, *unlike, *input_findings(panel, metadata.ranges))


def panel_location(metadata: Metadata, panel: Panel) -> Location | None:
    """What moves the medians of an artifact from the last row of an aligned panel; None for an earlier version's."""
    if metadata.location is None:
        return None
    if metadata.network_median:
        return Location((), metadata.symbols, metadata.horizons, metadata.frequency, network=True)
    (prices,), (days,) = panel_inputs(metadata, panel)
    columns, rolls = metadata.layout.split(prices), None
    if any(metadata.contracts):  # those of the graph
        rolls = RollMonths(metadata.contracts, metadata.horizons[-1])(days[None])[0]
    har = metadata.location.to_har(len(metadata.symbols), metadata.price_scale)
    inputs = ModelInputs(
        columns.symbols, rolls, columns.curve, references=columns.references, days=days, bars=columns.bars
    )
    return explain_location(har, inputs, metadata.symbols, metadata.references, panel.units)


def check_inputs(metadata: Metadata, prices: Tensor, days: Tensor) -> None:
    """Raise ValueError or TypeError for inputs for which the graph would return wrong results."""
    if prices.dtype != torch.float64 or days.dtype != torch.int64:
        raise TypeError(f"artifact: prices must be float64 and days int64; got {prices.dtype} and {days.dtype}")
    N = len(metadata.columns)
    if prices.dim() != 3 or prices.shape[2] != N or days.shape != prices.shape[:2] or 0 in prices.shape:
        got = f"{tuple(prices.shape)} and {tuple(days.shape)}"
        raise ValueError(f"artifact: prices must be (B, T, N) with N={N} columns and days (B, T), not empty; got {got}")
    if prices.shape[1] < metadata.min_rows:
        raise ValueError(f"artifact: prices must have at least {metadata.min_rows} rows; got {prices.shape[1]}")
    if torch.isinf(prices).any():
        raise ValueError("artifact: prices must be finite or NaN; got an infinite price")
    if (days.diff(dim=1) <= 0).any():
        raise ValueError("artifact: days must increase along T; got days that repeat or decrease")
    first, last = metadata.day_range
    if (days[:, 0] < first).any() or (days[:, -1] > last).any():
        got = f"{np.datetime64(int(days.min()), 'D')} to {np.datetime64(int(days.max()), 'D')}"
        raise ValueError(f"artifact: days must lie between {' and '.join(metadata.calendar)}; got {got}")
