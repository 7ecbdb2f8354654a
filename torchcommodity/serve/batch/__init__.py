"""An artefact answers a table of any number of panels, with bounded memory, into one DuckDB file."""

from torchcommodity.serve.batch.run import Summary as Summary
from torchcommodity.serve.batch.run import batch as batch
from torchcommodity.serve.batch.source import holds_panels as holds_panels

__all__ = ["Summary", "batch", "holds_panels"]
