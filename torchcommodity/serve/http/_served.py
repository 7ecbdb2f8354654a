"""What the server knows of its artifact: sent by a worker, since the server's own process does not import torch."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchcommodity.data import Frequency


@dataclass(frozen=True)
class ServedArtifact:
    """Metadata of the artifact, see `export.Metadata`, as far as requests and responses need them.

    Args:
        day_range: first and last supported date of a row, in days since 1970-01-01.
        example: a request that succeeds; None if the embedded prices do not have the symbols.
        empty_document: the dashboard's document without prices; its `model` is the model card.
    """

    symbols: tuple[str, ...]
    units: tuple[str, ...]
    horizons: tuple[int, ...]
    levels: tuple[float, ...]
    warmup: int
    min_rows: int
    calendar: tuple[str, str]
    day_range: tuple[int, int]
    frequency: "Frequency"
    model: str
    version: str
    trained_through: str
    sha256: str
    example: dict[str, Any] | None
    empty_document: dict[str, Any]
