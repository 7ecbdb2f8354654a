"""Dashboard document, cached until the prices or the date change."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date

from torchcommodity.data import Panel, utc_now
from torchcommodity.export import Artifact
from torchcommodity.serve.dashboard._document import Document, make_document
from torchcommodity.serve.dashboard._empty_document import empty_document


@dataclass
class Dashboard:
    """Function that reads the prices and returns the dashboard's document.

    A document takes seconds to make. It is cached while prices and date (UTC) stay the same.

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

    def __call__(self) -> Document:
        """The document for the current prices."""
        if self.read_prices is None:
            return empty_document(self.artifact.metadata)
        panel, today = self.read_prices(), date.fromisoformat(utc_now()[:10])
        if (key := f"{today} {_digest(panel)}") != self._key:
            self._document, self._key = make_document(self.artifact, panel, self.source, today), key
        return self._document


def _digest(panel: Panel) -> str:
    """Checksum of prices, dates, sources and findings, without the time of retrieval."""
    sources = [{key: value for key, value in source.items() if key != "retrieved"} for source in panel.sources()]
    digest = hashlib.sha256(panel.values.plain().numpy().tobytes())
    digest.update(panel.dates.tobytes())
    digest.update(repr((sources, panel.findings)).encode())
    return digest.hexdigest()
