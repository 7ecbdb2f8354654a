"""How often `opkit.diagnose` names the right cause, on a corpus of faulty and healthy training set-ups.

The corpus is in opkit/tests/corpus/models. Right means: the first error has an accepted kind and blames the right line.
A third of the entries, by a hash of their names, is held out: nobody looks at them while `diagnose` is mended.

python opkit/benchmarks/diagnose_corpus.py                        # table per category
python opkit/benchmarks/diagnose_corpus.py --only detached        # one category
python opkit/benchmarks/diagnose_corpus.py --details report.txt   # what was reported for each misjudged entry
python opkit/benchmarks/diagnose_corpus.py --page opkit/docs/results/diagnose.md
"""

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

KIT = Path(__file__).parents[1]
sys.path[:0] = [str(KIT / "tests"), str(KIT.parent / "benchmarks")]

from isolation import isolate  # noqa: E402  # after the path
from markdown import environment, replace_table  # noqa: E402

import torch_opkit as opkit  # noqa: E402
from corpus.models.entries import Entry, corpus  # noqa: E402

TIMEOUT = 60.0  # seconds
HEADER = (
    "| category | faults | right cause | wrong cause | missed | healthy | alarms | median, ms | max, ms |\n"
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
)


@dataclass(frozen=True)
class Judgement:
    """Outcome: "right", "wrong" or "missed" for a faulty set-up, "quiet" or "alarm" for a healthy one."""

    entry: Entry
    outcome: str
    seconds: float
    report: str = ""


def judge(entry: Entry) -> Judgement:
    """Diagnose an entry in a process of its own: no entry can change the next."""
    result = isolate(lambda: _diagnose(entry), TIMEOUT)
    if isinstance(result, str):
        result = _failed(entry), TIMEOUT, result
    return Judgement(entry, *result)


def _diagnose(entry: Entry) -> tuple[str, float, str]:
    """Outcome, seconds and report."""
    torch.manual_seed(0)
    started = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            diagnosis = opkit.diagnose(*entry.make())
    except Exception as error:  # a diagnosis never ends with an exception
        return _failed(entry), time.perf_counter() - started, f"{type(error).__name__}: {error}"
    return _outcome(entry, diagnosis), time.perf_counter() - started, str(diagnosis)


def _failed(entry: Entry) -> str:
    """The outcome without a diagnosis."""
    return "alarm" if entry.healthy else "wrong"


def _outcome(entry: Entry, diagnosis: opkit.Diagnosis) -> str:
    first = next(iter(diagnosis.errors), None)
    if entry.healthy:
        return "alarm" if first else "quiet"
    if not first:
        return "missed"
    return "right" if entry.accepts(first.kind, first.location) else "wrong"


def table(judgements: Sequence[Judgement]) -> Iterator[str]:
    """Rows by category, and totals of all entries and of those held out."""
    yield HEADER
    for category in dict.fromkeys(judgement.entry.category for judgement in judgements):
        yield _row(category.replace("_", " "), [j for j in judgements if j.entry.category == category])
    yield _row("**all**", judgements)
    yield _row("**held out**", [j for j in judgements if j.entry.held_out])


def _row(title: str, judgements: Sequence[Judgement]) -> str:
    outcomes = [judgement.outcome for judgement in judgements]
    faults = sum(not judgement.entry.healthy for judgement in judgements)
    right, wrong, missed, alarms = (outcomes.count(name) for name in ("right", "wrong", "missed", "alarm"))
    times = [1000 * judgement.seconds for judgement in judgements] or [0.0]
    cells = [title, faults, right, wrong, missed, len(outcomes) - faults, alarms]
    return f"| {' | '.join(map(str, cells))} | {statistics.median(times):.0f} | {max(times):.0f} |"


def details(judgements: Sequence[Judgement], *, held_out: bool) -> Iterator[str]:
    """Every misjudged entry with what is accepted and what was reported; held-out ones only on request."""
    for judgement in judgements:
        entry = judgement.entry
        if judgement.outcome in {"right", "quiet"} or (entry.held_out and not held_out):
            continue
        yield f"=== {judgement.outcome}: {entry.category}/{entry.name}"
        yield f"accepted: {', '.join(sorted(entry.kinds)) or 'no error'}; line: {' | '.join(entry.lines) or 'any'}"
        yield judgement.report + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="Category to judge")
    parser.add_argument("--details", type=Path, help="Text file for the reports of misjudged entries")
    parser.add_argument("--held-out", action="store_true", help="Include held-out entries in the details")
    parser.add_argument("--page", type=Path, help="Markdown page whose table `corpus` is replaced")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    selected: Callable[[Entry], bool] = lambda entry: arguments.only in (None, entry.category)  # noqa: E731
    judgements = [judge(entry) for entry in filter(selected, corpus())]
    text = "\n".join(table(judgements))
    print(text)
    if arguments.details:
        arguments.details.write_text(text + "\n\n" + "\n".join(details(judgements, held_out=arguments.held_out)))
    if arguments.page:
        replace_table(arguments.page, "corpus", f"{text}\n\n{environment('One thread')}")


if __name__ == "__main__":
    main()
