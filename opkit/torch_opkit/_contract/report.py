"""Results of the contract checks of one operator: its faults by cause, and a table or JSON of every check."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Literal

Status = Literal["pass", "fail", "skip"]
# Reported after causes that make results wrong: a CPU tensor that other devices refuse, and forward mode, which PyTorch
# lacks for every custom_op with `register_autograd`.
LAST = ("hard_coded_device", "zero_tangent")
INDENT = " " * 4
MOST_NAMES = 8  # in a line


@dataclass(frozen=True)
class Result:
    """Result of one check.

    `cause` is set if it failed or was skipped; `sample`, `fix`, `kind` and `location` if it failed: the arguments, the
    remedy, an identifier of the root cause such as "nondeterministic", and file:line of the operator, or of its
    backward. `guess` is what the check assumed without having been told; `blocked_by` names the failed check on which
    one that was not run depends.
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
    blocked_by: str = ""

    def __str__(self) -> str:
        words = [f"{self.name:<24} {self.status:<5} {self.seconds:6.2f} s", self.cause]
        details = [f"on:  {self.sample}", f"fix: {self.fix}"] if self.status == "fail" else []
        details += [f"at:  {self.location}"] if self.location else []
        return "\n".join(["  ".join(words).rstrip(), *(f"{'':<25}{detail}" for detail in details)])


@dataclass(frozen=True)
class Report(Sequence[Result]):
    """Results of all checks of one operator, by position or by name.

    It prints the faults, each with its cause and a remedy, and why checks were skipped; `table` lists every check.
    """

    operator: str
    results: tuple[Result, ...]
    location: str = ""  # file:line of the operator; "" if its source is not known
    guesses: tuple[str, ...] = ()  # what was not stated, and so guessed or measured
    notes: tuple[str, ...] = ()  # how the operator was run

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return not self.failures

    @property
    def failures(self) -> tuple[Result, ...]:
        """Results of the failed checks."""
        return tuple(result for result in self.results if result.status == "fail")

    @property
    def causes(self) -> tuple[Result, ...]:
        """The first failed check of each kind of cause: what to fix, in this order."""
        first: dict[str, Result] = {}
        for result in self.failures:
            first.setdefault(result.kind, result)
        return tuple(sorted(first.values(), key=lambda r: LAST.index(r.kind) + 1 if r.kind in LAST else 0))

    @property
    def seconds(self) -> float:
        """Time that all checks took."""
        return sum(result.seconds for result in self)

    def __getitem__(self, key: str | int) -> Result:  # type: ignore[override]  # by name or by position
        return self.results[key] if isinstance(key, int) else next(result for result in self if result.name == key)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __str__(self) -> str:
        lines = [self._title(), *(f"note: {note}" for note in self.notes)]
        lines += [f"on a guess: {guess}" for guess in self.guesses]
        for number, cause in enumerate(self.causes, 1):
            lines += ["", *self._describe(number, cause)]
        skips = sorted((r for r in self._with_status("skip") if not r.blocked_by), key=lambda r: r.cause)
        lines.append("")
        for reason, group in groupby(skips, key=lambda r: r.cause):
            lines.append(f"skipped: {', '.join(r.name for r in group)}: {reason}")
        return "\n".join([*lines, f"{len(self._with_status('pass'))} of {len(self)} checks passed"])

    def table(self) -> str:
        """One line for each check, with its time; failed checks with sample and remedy."""
        return "\n".join([self._title(), *map(str, self)])

    def json(self) -> str:
        """JSON object with the operator, `ok`, its location, the guesses, the kinds of causes and every result."""
        fields = {
            "operator": self.operator,
            "ok": self.ok,
            "location": self.location,
            "guesses": self.guesses,
            "notes": self.notes,
            "causes": [cause.kind for cause in self.causes],
            "results": [asdict(result) for result in self],
        }
        return json.dumps(fields, indent=2)

    def _title(self) -> str:
        counts = [f"{len(self._with_status(status))} {status}" for status in ("pass", "fail", "skip")]
        title = f"{self.operator}: {', '.join(counts)}, {self.seconds:.1f} s"
        return f"{title}  ({self.location})" if self.location else title

    def _with_status(self, status: Status) -> list[Result]:
        return [result for result in self if result.status == status]

    def _describe(self, number: int, cause: Result) -> list[str]:
        """Lines about a cause: what is wrong and where, on which arguments, the remedy, and its symptoms."""
        name = cause.name if cause.kind == cause.name else f"{cause.kind} ({cause.name})"
        same = [r.name for r in self.failures if r.kind == cause.kind and r is not cause]
        blocked = [r.name for r in self if r.blocked_by in {cause.name, *same}]
        more = f" and {len(blocked) - MOST_NAMES} more" if len(blocked) > MOST_NAMES else ""
        details = {
            "on": cause.sample,
            "fix": cause.fix,
            "also failed": ", ".join(same),
            "not run, as they depend on it": ", ".join(blocked[:MOST_NAMES]) + more,
        }
        head = f"{number}. {name}" + (f"  {cause.location}" if cause.location else "")
        return [head, f"{INDENT}{cause.cause}", *(f"{INDENT}{key}: {text}" for key, text in details.items() if text)]
