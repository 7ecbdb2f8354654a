"""Results of the contract checks of one operator, printed as a table or as JSON."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

Status = Literal["pass", "fail", "skip"]


@dataclass(frozen=True)
class Result:
    """Result of one check.

    `cause` is set if it failed or was skipped; `sample`, `fix`, `kind` and `location` if it failed: the arguments, the
    remedy, an identifier of the root cause such as "nondeterministic", and file:line of the operator, or of its
    backward. `guess` is what the check assumed without having been told.
    """

    name: str
    status: Status
    seconds: float
    sample: str = ""
    cause: str = ""
    fix: str = ""
    kind: str = ""
    location: str = ""
    guess: str = ""

    def __str__(self) -> str:
        words = [f"{self.name:<24} {self.status:<5} {self.seconds:6.2f} s", self.cause]
        details = [f"on:  {self.sample}", f"fix: {self.fix}"] if self.status == "fail" else []
        return "\n".join(["  ".join(words).rstrip(), *(f"{'':<25}{detail}" for detail in details)])


@dataclass(frozen=True)
class Report(Sequence[Result]):
    """Results of all checks of one operator, by position or by name. It prints as a table."""

    operator: str
    results: tuple[Result, ...]
    location: str = ""
    guesses: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return not self.failures

    @property
    def failures(self) -> tuple[Result, ...]:
        """Results of the failed checks."""
        return tuple(result for result in self.results if result.status == "fail")

    def __getitem__(self, key: str | int) -> Result:  # type: ignore[override]  # by name or by position
        return self.results[key] if isinstance(key, int) else next(result for result in self if result.name == key)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __str__(self) -> str:
        counts = [f"{sum(r.status == status for r in self)} {status}" for status in ("pass", "fail", "skip")]
        title = f"{self.operator}: {', '.join(counts)}, {sum(r.seconds for r in self):.1f} s"
        return "\n".join([title, *map(str, self)])

    def json(self) -> str:
        """JSON object with the operator's name, `ok` and the list of results."""
        results = [asdict(result) for result in self]
        return json.dumps({"operator": self.operator, "ok": self.ok, "results": results}, indent=2)
