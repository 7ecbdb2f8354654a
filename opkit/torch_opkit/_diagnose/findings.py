"""The result of `diagnose`: findings with a location, and the diagnosis that contains them."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]
SEVERITIES = ("error", "warning", "note")
# causes first: what follows from one of them is listed after it
ORDER = (
    "crash", "no_parameters", "frozen", "inference_tensor", "parameter_not_finite", "input_not_finite", "not_a_tensor",
    "new_parameter", "plain_list", "not_a_parameter", "graph_kept", "intermediate_on_ctx", "data", "detach", "no_grad",
    "copy", "python", "not_differentiable", "integer", "wrong_backward", "rounding", "in_place", "broadcast",
    "double_softmax", "batch_mixed", "dead_units", "saturated_units",
)  # fmt: skip


@dataclass(frozen=True)
class ModelFinding:
    """One problem. `kind` is its identifier, `names` the parameters or layers, `location` a file and line."""

    kind: str
    message: str
    fix: str
    names: tuple[str, ...] = ()
    location: str = ""
    severity: Severity = "error"

    def __str__(self) -> str:
        names = ", ".join(self.names[:6]) + (f" and {len(self.names) - 6} more" if len(self.names) > 6 else "")
        lines = [f"{self.severity}: {self.kind}: {self.message}", names and f"  of:  {names}"]
        lines += [self.location and f"  at:  {self.location}", f"  fix: {self.fix}"]
        return "\n".join(filter(None, lines))


@dataclass(frozen=True)
class Diagnosis(Sequence[ModelFinding]):
    """All findings, errors first. It prints as text."""

    findings: tuple[ModelFinding, ...]

    @property
    def errors(self) -> tuple[ModelFinding, ...]:
        """Findings that keep the model from learning; a warning or a note does not."""
        return tuple(finding for finding in self.findings if finding.severity == "error")

    @property
    def ok(self) -> bool:
        """Whether there are no errors."""
        return not self.errors

    @property
    def crashed(self) -> bool:
        """Whether the user's code has raised an exception, so that gradients were not examined."""
        return any(finding.kind == "crash" for finding in self.findings)

    def __getitem__(self, index: int) -> ModelFinding:  # type: ignore[override]  # no slices
        return self.findings[index]

    def __iter__(self) -> Iterator[ModelFinding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __str__(self) -> str:
        title = "ok: gradients of the loss reach the parameters" if self.ok else ""
        return "\n".join(filter(None, [title, *map(str, self.findings)]))

    def json(self) -> str:
        """JSON object with `ok` and the list of findings."""
        return json.dumps({"ok": self.ok, "findings": [asdict(finding) for finding in self]}, indent=2)


def ranked(findings: Iterable[ModelFinding]) -> list[ModelFinding]:
    """Errors first, then warnings, and among them causes first; each once."""
    ranks = {kind: rank for rank, kind in enumerate(ORDER)}
    unique = dict.fromkeys(findings)
    return sorted(unique, key=lambda f: (SEVERITIES.index(f.severity), ranks.get(f.kind, len(ranks))))
