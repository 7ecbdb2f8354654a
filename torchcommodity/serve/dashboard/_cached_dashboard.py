"""The document of the page, made again when the prices have changed."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date

from torchcommodity.data import Panel, utc_now
from torchcommodity.export import Artifact
from torchcommodity.serve.dashboard._document import Document, document, empty


@dataclass
class Dashboard:
    """Called, it reads the prices again and gives the document of what it read.

    The seconds of work are done once for the same prices on the same day.

    Args:
        artifact: what forecasts.
        read: gives the prices; None = there are none, and the document says how to give them.
        source: what they are asked from, in one word, for the page.
    """

    artifact: Artifact
    read: Callable[[], Panel] | None = None
    source: str = ""
    _made_of: str = field(default="", init=False)
    _document: Document = field(default_factory=dict, init=False)

    def __call__(self) -> Document:
        if self.read is None:
            return empty(self.artifact.metadata)
        panel, today = self.read(), date.fromisoformat(utc_now()[:10])
        if (made_of := f"{today} {_digest(panel)}") != self._made_of:
            self._document, self._made_of = document(self.artifact, panel, self.source, today), made_of
        return self._document


def _digest(panel: Panel) -> str:
    """Of prices, days, names and findings; not of the time at which they were read."""
    named = [{key: x for key, x in source.items() if key != "retrieved"} for source in panel.sources()]
    found = hashlib.sha256(panel.values.plain().numpy().tobytes())
    found.update(panel.dates.tobytes())
    found.update(repr((named, panel.findings)).encode())
    return found.hexdigest()
