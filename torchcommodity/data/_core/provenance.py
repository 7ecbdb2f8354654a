"""Provenance: where the prices of a column come from."""

from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from datetime import datetime, timezone

from torchcommodity.data._core.errors import DataError, Finding
from torchcommodity.data._core.names import text_problem

NOT_STATED = "not stated"


@dataclass(frozen=True)
class Provenance:
    """Source of one column of prices.

    Args:
        publisher: who published the prices.
        location: address or file they were read from.
        license: terms of use, or "not stated".
        retrieved: time of retrieval, ISO 8601 in UTC.
        sha256: checksum of the bytes received.
        series: the publisher's name for the series.
        credit: line that has to be shown wherever the prices are, or "".

    Raises:
        DataError: a field is not one line of printable text.

    >>> Provenance("EIA", "https://api.eia.gov/v2/", "public", "2024-01-02T00:00:00Z", "", "PET.RWTC.D").publisher
    'EIA'
    """

    publisher: str
    location: str
    license: str
    retrieved: str
    sha256: str
    series: str
    credit: str = ""

    def __post_init__(self) -> None:
        for field, text in zip(fields(self), astuple(self)):
            if problem := text_problem(text):
                raise DataError(f"provenance: expected a {field.name} {problem}; got {repr(text)[:80]}")

    @property
    def is_stated(self) -> bool:
        """Whether a publisher is named."""
        return self.publisher not in ("", NOT_STATED)


def drop_origin_findings(findings: Iterable[Finding], records: Iterable[Provenance]) -> tuple[Finding, ...]:
    """The findings without "origin not stated", if every record names a publisher."""
    is_stated = all(record.is_stated for record in records)
    return tuple(finding for finding in findings if not (is_stated and finding.kind == "origin not stated"))


def utc_now() -> str:
    """The current time, ISO 8601 in UTC to the second."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
