"""What an artifact says of itself."""

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch

import torchcommodity
from torchcommodity.export._roll_calendar import FIRST, LAST
from torchcommodity.forecast import Forecaster
from torchcommodity.models import model_name

FORMATS = ("pt2", "aoti", "onnx")


@dataclass(frozen=True)
class Metadata:
    """What an artifact reads and gives, and where it comes from.

    Args:
        format: `pt2`, `aoti` or `onnx`.
        symbols: N names, the columns of the prices in their order.
        units: N units of the prices; "" where not stated.
        contracts: N product codes whose rolls the graph knows; None = spot.
        horizons: H numbers of rows ahead.
        levels: Q probabilities of the quantiles.
        warmup: returns that a symbol must have before its first forecast; until then it is NaN.
        calendar: the first and the last day that a row may have.
        provenance: one record a symbol of the prices that the model learned from, as `Panel.sources` gives them.
        trained_through: the last date of those prices.
        model: its name in `models.MODELS`.
        note: what training did, in words.
        version: of torchcommodity, which wrote the file.
        torch: the version with which it was written.
        sha256: of the file up to the checksum that stands in it.
    """

    format: str
    symbols: tuple[str, ...]
    units: tuple[str, ...]
    contracts: tuple[str | None, ...]
    horizons: tuple[int, ...]
    levels: tuple[float, ...]
    warmup: int
    calendar: tuple[str, str]
    provenance: tuple[dict[str, str], ...]
    trained_through: str
    model: str
    note: str
    version: str
    torch: str
    sha256: str = ""

    @property
    def least_rows(self) -> int:
        """Rows that a forecast needs: one more than the returns of the warm-up."""
        return max(self.warmup + 1, 3)

    @property
    def days(self) -> tuple[int, int]:
        """The calendar in days since 1970-01-01."""
        first, last = (int(np.datetime64(day, "D").astype(np.int64)) for day in self.calendar)
        return first, last

    def json(self) -> str:
        """Without the checksum of the file that it stands in."""
        return json.dumps(asdict(replace(self, sha256="")), sort_keys=True)


def about(forecaster: Forecaster, format: str) -> Metadata:
    """What an artifact of this forecaster will say."""
    sources = forecaster.sources
    return Metadata(
        format=format,
        symbols=tuple(forecaster.symbols),
        units=tuple(source["unit"] for source in sources) or ("",) * len(forecaster.symbols),
        contracts=forecaster.contracts,
        horizons=forecaster.horizons,
        levels=forecaster.levels,
        warmup=forecaster.model.har.config.warmup,
        calendar=(str(FIRST), str(LAST)),
        provenance=sources,
        trained_through=forecaster.record.through,
        model=model_name(forecaster.model.config),
        note=forecaster.record.note,
        version=torchcommodity.__version__,
        torch=torch.__version__,
    )


def read(text: str, sha256: str) -> Metadata:
    """What `Metadata.json` wrote, or a KeyError, TypeError or ValueError."""
    values: dict[str, Any] = json.loads(text)
    lists = {name: tuple(x) for name, x in values.items() if isinstance(x, list)}
    return Metadata(**{**values, **lists, "sha256": sha256})
