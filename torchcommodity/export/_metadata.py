"""Metadata of an artifact."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, get_args

import numpy as np
import torch
from torch import Tensor

import torchcommodity
from torch_opkit.arguments import operation
from torchcommodity._choices import ArtifactFormat
from torchcommodity.data import Frequency, Panel, PriceStatistics, bar_columns, restore_spreads, unit_problem
from torchcommodity.export._columns import ColumnLayout
from torchcommodity.export._export_program import close_names
from torchcommodity.export._location import LocationRecord
from torchcommodity.export._roll_months import calendar_range, day_range
from torchcommodity.forecast import (
    MAX_ROWS,
    Forecaster,
    align_panel,
    check_names,
    check_settings,
    check_statistics,
    check_text,
    parse_date,
    signed_columns,
)
from torchcommodity.models import MODELS, Bounds, Increasing, IncreasingInts, check_fields, model_name
from torchcommodity.training import check_no_extra_terms, parse_json

IMPORT_PATH = re.compile(r"[\w.-]{1,200}:[\w.<>]{1,200}")  # of a network that the package does not have
MAX_COLUMNS = 100_000  # of what a file may ask for
FORMATS: tuple[ArtifactFormat, ...] = get_args(ArtifactFormat)


@dataclass(frozen=True)
class Metadata:
    """Inputs, outputs and provenance of an artifact.

    Args:
        format: `pt2`, `aoti` or `onnx`.
        symbols: N names of the forecast prices, the first columns of the prices in order.
        units: N units of the prices; "" if unknown.
        contracts: N product codes whose rolls the graph includes; None = spot.
        horizons: H numbers of rows ahead.
        levels: Q probabilities of the quantiles.
        warmup: returns required before the first forecast of a symbol, which is NaN until then.
        calendar: first and last supported date of a row.
        provenance: one record per symbol of the training prices, see `Panel.sources`.
        trained_through: last date of the training prices.
        model: name in `models.MODELS`.
        note: outcome of training, see `FitRecord`.
        version: version of torchcommodity that wrote the file.
        torch: version of torch that wrote the file.
        sha256: the checksum stored in the file.
        frequency: of the prices: what a row is. A file without it is for daily prices.
        training_prices: range, last price and largest move of each symbol in training, to compare later prices with. A
            file of an earlier version has none.
        references: R names of prices that help to forecast, the next columns of the prices in order.
        ranges: symbols with an open, a high and a low, in this order the last columns of the prices: `WTI open`,
            `WTI high`, `WTI low`.
        closes: names of the contracts whose closes help to forecast spot prices, the columns before those: `CL 1` is
            the front contract of CL.
        curve_of: product of the curve of each symbol, or None. A file of an earlier version has none.
        location: what `Artifact.location` needs beside the prices. A file of an earlier version has none.
        scale: S of each symbol whose prices may be zero or negative: the graph returns quantiles of the change of
            asinh(P / S); null for one in logs. Empty if all are.
        network_median: whether a network of the user's forecasts the median itself, which `location` does not explain.
    """

    format: ArtifactFormat
    symbols: tuple[str, ...]
    units: tuple[str, ...]
    contracts: tuple[str | None, ...]
    horizons: IncreasingInts
    levels: Annotated[tuple[float, ...], Increasing()]
    warmup: Annotated[int, Bounds(ge=1, le=MAX_ROWS)]
    calendar: tuple[str, str]
    provenance: tuple[dict, ...]  # type: ignore[type-arg]  # `check_names` checks what is in it
    trained_through: str
    model: str
    note: str
    version: str
    torch: str
    sha256: str = ""
    frequency: Frequency = "daily"
    training_prices: tuple[PriceStatistics, ...] = ()
    references: tuple[str, ...] = ()
    location: LocationRecord | None = None
    ranges: tuple[str, ...] = ()
    closes: tuple[str, ...] = ()
    curve_of: tuple[str | None, ...] = ()
    scale: tuple[float | None, ...] = ()
    network_median: bool = False

    @property
    def price_scale(self) -> Tensor | None:
        """(N,) `scale`, NaN = log; None: all are logs."""
        return _scale_tensor(self.scale)

    @property
    def signed(self) -> tuple[str, ...]:
        """Symbols whose prices may be zero or negative."""
        return tuple(symbol for symbol, scale in zip(self.symbols, self.scale) if scale is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of the prices: symbols, references, closes of curves, and the bars of `ranges`."""
        return self.symbols + self.references + self.closes + bar_columns(self.ranges)

    @property
    def layout(self) -> ColumnLayout:
        """Which of the columns are what."""
        products = self.curve_of or (None,) * len(self.symbols)
        has_bars = self.location is not None and self.location.config.bars
        return ColumnLayout.of(self.symbols, self.references, products, self.closes, self.ranges, has_bars)

    def align_panel(self, panel: Panel) -> Panel:
        """Select the symbols and references of the artifact from a panel; see `forecast.align_panel`.

        Spreads that the panel lacks are made of their legs, see `data.restore_spreads`.
        """
        panel = restore_spreads(panel, self.provenance)
        fitted = self.symbols, self.contracts, self.frequency, self.references, self.curve_of
        return align_panel(panel, *fitted)

    @property
    def min_rows(self) -> int:
        """Minimum number of rows for a forecast: one more than the warm-up."""
        return max(self.warmup + 1, 3)

    @property
    def day_range(self) -> tuple[int, int]:
        """`calendar` in days since 1970-01-01."""
        return day_range(self.calendar)

    def to_json(self) -> str:
        """Convert to JSON, without the checksum, a scale that no symbol has, and a median of no network."""
        values = asdict(replace(self, sha256=""))
        for name in ("scale", "network_median"):
            if not values[name]:
                del values[name]
        return json.dumps(values, sort_keys=True)


def _scale_tensor(scale: Sequence[float | None]) -> Tensor | None:
    values = [math.nan if x is None else x for x in scale]
    return torch.tensor(values, dtype=torch.double) if values else None


@operation("export")
def make_metadata(forecaster: Forecaster, format: ArtifactFormat) -> Metadata:
    """Build the metadata of an artifact.

    Args:
        forecaster: result of `forecast.fit` or `Forecaster.load`.
        format: format of the artifact.

    Raises:
        ValueError: the forecaster was fitted with covariates.
    """
    remedy = "an artifact takes prices only: fit without them, or use Forecaster.predict with covariates"
    check_no_extra_terms(forecaster.model.har.config, remedy)
    sources, scale = forecaster.sources, forecaster.scale
    return Metadata(
        format=format,
        symbols=tuple(forecaster.symbols),
        units=tuple(source["unit"] for source in sources) or ("",) * len(forecaster.symbols),
        contracts=forecaster.contracts,
        horizons=forecaster.horizons,
        levels=forecaster.levels,
        warmup=forecaster.model.har.config.warmup,
        calendar=calendar_range(forecaster.contracts),
        provenance=sources,
        trained_through=forecaster.record.through,
        model=model_name(forecaster.model.config),
        note=forecaster.record.note,
        version=torchcommodity.__version__,
        torch=torch.__version__,
        frequency=forecaster.frequency,
        training_prices=forecaster.record.prices,
        references=forecaster.references,
        closes=close_names(forecaster),
        curve_of=forecaster.curve_of if any(forecaster.curve_of) else (),
        location=LocationRecord.from_har(forecaster.model.har),
        ranges=forecaster.ranges,
        scale=() if scale is None else tuple(None if math.isnan(x) else x for x in scale.tolist()),
        network_median=forecaster.model.forecasts_median,
    )


def parse_metadata(text: str, sha256: str) -> Metadata:
    """Parse the JSON of `Metadata.to_json`.

    Raises:
        KeyError, TypeError, ValueError: anything else, or values that no forecaster has.
    """
    values: dict[str, Any] = parse_json(text)
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    prices = tuple(PriceStatistics(**record) for record in values.get("training_prices", ()))
    location, scale = values.get("location"), _scale_tensor(values.get("scale", ()))
    location = None if location is None else LocationRecord.from_dict(location, len(values["symbols"]), scale)
    metadata = Metadata(**{**values, **lists, "training_prices": prices, "location": location, "sha256": sha256})
    check_metadata(metadata)
    return metadata


def check_metadata(metadata: Metadata) -> None:
    """Raise TypeError or ValueError unless each field has its type and range, and they agree with one another."""
    m = metadata
    check_fields(m)
    check_names(m.symbols, m.contracts, m.provenance)
    check_statistics(m.training_prices, len(m.symbols), signed_columns(m.price_scale))
    for name in ("note", "version", "torch"):
        check_text(name, getattr(m, name))
    if m.location is not None:
        check_settings(m.location.config, m.symbols)
    trained, first, last = (np.datetime64(parse_date(day), "D") for day in (m.trained_through, *m.calendar))
    config = None if m.location is None else m.location.config
    rules = {
        "units: one for each symbol": len(m.units) == len(m.symbols) and not any(map(unit_problem, m.units)),
        f"columns: different names, at most {MAX_COLUMNS}": len(m.columns) == len(set(m.columns)) <= MAX_COLUMNS,
        "levels: below 1": m.levels[-1] < 1,
        f"horizons: at most {MAX_ROWS} rows": m.horizons[-1] <= MAX_ROWS,
        f"model: one of {', '.join(MODELS)}, or an import path": m.model in MODELS
        or bool(IMPORT_PATH.fullmatch(m.model)),
        "frequency: daily with contracts": m.frequency == "daily" or not any(m.contracts),
        "curve_of: none, or one for each symbol": len(m.curve_of) in (0, len(m.symbols)),
        "scale: none, or a positive number or null for each symbol": len(m.scale) in (0, len(m.symbols))
        and all(x is None or 0 < x < math.inf for x in m.scale),
        "ranges: of symbols": set(m.ranges) <= set(m.symbols),
        "calendar: that of the contracts": tuple(m.calendar) in (calendar_range(m.contracts), calendar_range(["CL"])),
        "trained_through: a date of the calendar": first <= trained <= last,
        "location: of the same horizons, levels, warm-up, frequency and references": config is None
        or (config.horizons, config.levels, config.warmup, config.frequency, config.references)
        == (m.horizons, m.levels, m.warmup, m.frequency, m.references),
    }
    if broken := [rule for rule, holds in rules.items() if not holds]:
        name = broken[0].partition(":")[0]
        raise ValueError(f"metadata with {name} other than expected ({broken[0]}): {getattr(m, name)!r}"[:300])
