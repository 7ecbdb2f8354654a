"""A row judges one promise. Rows register themselves here; a `Report` says what became of each."""

import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import torch

from torchcommodity.opkit._check.subject import Skip as Skip
from torchcommodity.opkit._check.subject import Subject

Judge = Callable[[Subject], None]
Status = Literal["pass", "fail", "skip"]


@dataclass(frozen=True)
class Row:
    """One promise: `judge` raises if it is broken, with the cause as its message."""

    name: str
    promise: str
    remedy: str
    judge: Judge
    after: tuple[str, ...]  # rows that this one builds on: where they fail, it is not judged
    once: bool  # judged on the first sample only
    compiled: bool  # costs seconds
    timed: bool  # speaks of rows of time or of free leading axes: void where the record says `time=None`


@dataclass(frozen=True)
class Result:
    """What became of a row; `sample`, `cause` and `remedy` speak where it did not pass."""

    name: str
    status: Status
    seconds: float
    sample: str = ""
    cause: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        words = [f"{self.name:<22} {self.status:<5} {self.seconds:6.2f} s", self.cause]
        details = [f"on:  {self.sample}", f"fix: {self.remedy}"] if self.status == "fail" else []
        return "\n".join(["  ".join(words).rstrip(), *(f"{'':<23}{detail}" for detail in details)])


@dataclass(frozen=True)
class Report(Sequence[Result]):
    """The contract of one operator, row by row. It prints as a table."""

    operator: str
    rows: tuple[Result, ...]

    @property
    def ok(self) -> bool:
        return not self.failures

    @property
    def failures(self) -> tuple[Result, ...]:
        return tuple(result for result in self.rows if result.status == "fail")

    def __getitem__(self, key: str | int) -> Result:  # type: ignore[override]  # by name or by position
        return self.rows[key] if isinstance(key, int) else next(result for result in self if result.name == key)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        counts = [f"{sum(r.status == status for r in self)} {status}" for status in ("pass", "fail", "skip")]
        title = f"{self.operator}: {', '.join(counts)}, {sum(r.seconds for r in self):.1f} s"
        return "\n".join([title, *map(str, self)])

    def json(self) -> str:
        return json.dumps({"operator": self.operator, "ok": self.ok, "rows": [asdict(r) for r in self]}, indent=2)


ROWS: dict[str, Row] = {}


def row(
    remedy: str, *, after: Sequence[str] = (), once: bool = False, compiled: bool = False, timed: bool = False
) -> Callable[[Judge], Judge]:
    """Register a function as a row: its name is the row's, the first line of its docstring the promise."""

    def register(judge: Judge) -> Judge:
        promise = (judge.__doc__ or "").strip().splitlines()[0]
        once_only = once or compiled
        ROWS[judge.__name__] = Row(judge.__name__, promise, remedy, judge, tuple(after), once_only, compiled, timed)
        return judge

    return register


def judged(row: Row, subjects: Sequence[Subject]) -> Result:
    """Judge a row on one sample after another, until one fails. A row is skipped if every sample was."""
    start, skips = time.perf_counter(), []
    for subject in subjects[: 1 if row.once else None]:
        try:
            if row.timed and not subject.op.time:
                raise Skip("the record says time=None: there are no rows of time, and the batch is no free axis")
            _quietly(row.judge, subject)
        except Skip as reason:
            skips.append(str(reason))
        except Exception as error:
            seconds = time.perf_counter() - start
            return Result(row.name, "fail", seconds, str(subject.sample), in_words(error), row.remedy)
    status: Status = "skip" if len(skips) == len(subjects[: 1 if row.once else None]) else "pass"
    return Result(row.name, status, time.perf_counter() - start, cause=skips[0] if status == "skip" else "")


def _quietly(judge: Judge, subject: Subject) -> None:
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        judge(subject)


def in_words(error: Exception, width: int = 400) -> str:
    """The cause on one line; an exception that is not ours is named."""
    words = " ".join(str(error).split()) or "no message"
    words = words if isinstance(error, AssertionError) else f"{type(error).__name__}: {words}"
    return words if len(words) <= width else words[: width - 3] + "..."
