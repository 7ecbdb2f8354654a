"""What the doctor says: findings with a place, and the diagnosis that holds them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

Severity = Literal["fault", "note"]


@dataclass(frozen=True)
class Finding:
    """`kind` is a fixed word to test for, `what` the layers or parameters that it is about, `where` a file and line."""

    kind: str
    message: str
    remedy: str
    what: tuple[str, ...] = ()
    where: str = ""
    severity: Severity = "fault"

    def __str__(self) -> str:
        names = ", ".join(self.what[:6]) + (f" and {len(self.what) - 6} more" if len(self.what) > 6 else "")
        lines = [f"{self.severity}: {self.kind}: {self.message}", names and f"  of:  {names}"]
        lines += [self.where and f"  at:  {self.where}", f"  fix: {self.remedy}"]
        return "\n".join(filter(None, lines))


@dataclass(frozen=True)
class Diagnosis(Sequence[Finding]):
    """What was found, faults first; `healthy` if there is no fault. It prints as text."""

    findings: tuple[Finding, ...]

    @property
    def faults(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity == "fault")

    @property
    def healthy(self) -> bool:
        return not self.faults

    def __getitem__(self, index: int) -> Finding:  # type: ignore[override]  # slices are nobody's wish
        return self.findings[index]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __str__(self) -> str:
        title = "healthy: nothing stands between the loss and the parameters" if self.healthy else ""
        return "\n".join(filter(None, [title, *map(str, self.findings)]))

    def json(self) -> str:
        return json.dumps({"healthy": self.healthy, "findings": [asdict(finding) for finding in self]}, indent=2)
