"""Dashboard document, the outlook first, cached until the prices or the date change."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date

from torchcommodity.data import Panel, utc_now
from torchcommodity.export import Artifact
from torchcommodity.serve.dashboard._document import Document, make_document
from torchcommodity.serve.dashboard._model_card import empty_document
from torchcommodity.serve.dashboard._past_forecasts import CachedArtifact


@dataclass
class Dashboard:
    """Function that reads the prices and returns the dashboard's document.

    The first call returns the outlook, whose `state` says so, and the next one the complete document for the same
    prices, which takes many seconds to make. It is cached while prices and date (UTC) stay the same; after new prices
    only the forecasts from new rows are computed.

    Args:
        artifact: makes the forecasts.
        read_prices: returns the current prices; None = no prices, and the document says how to provide them.
        source: name of the source of prices, shown on the page.
    """

    artifact: Artifact
    read_prices: Callable[[], Panel] | None = None
    source: str = ""
    _key: str = field(default="", init=False)
    _document: Document = field(default_factory=dict, init=False)
    _unfinished: Panel | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._forecasts = CachedArtifact(self.artifact)

    def __call__(self) -> Document:
        """The document for the current prices; before the first complete one, the outlook."""
        if self.read_prices is None:
            return empty_document(self.artifact.metadata)
        panel, today = self._unfinished or self.read_prices(), date.fromisoformat(utc_now()[:10])
        self._unfinished = None
        if (key := f"{today} {_digest(panel)}") != self._key:
            outlook_only = not self._document
            self._document = make_document(self._forecasts, panel, self.source, today, outlook_only=outlook_only)
            self._key, self._unfinished = ("", panel) if outlook_only else (key, None)
        return self._document


def _digest(panel: Panel) -> str:
    """Checksum of prices, dates, sources and findings, without the time of retrieval."""
    sources = [{key: value for key, value in source.items() if key != "retrieved"} for source in panel.sources()]
    digest = hashlib.sha256(panel.values.plain().numpy().tobytes())
    if panel.references is not None:
        digest.update(panel.references.values.plain().numpy().tobytes())
    if panel.bars is not None:
        digest.update(panel.bars.plain().numpy().tobytes())
    if panel.curve is not None:
        digest.update(repr(panel.curve_of).encode() + panel.curve.plain().numpy().tobytes())
    digest.update(panel.dates.tobytes())
    digest.update(repr((sources, panel.findings)).encode())
    return digest.hexdigest()
