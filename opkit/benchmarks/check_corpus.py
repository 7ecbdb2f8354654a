"""`opkit.check` on a corpus of operators that others could bring, faulty and healthy, beside torch's own tests.

python opkit/benchmarks/check_corpus.py                                # every category, two processes
python opkit/benchmarks/check_corpus.py --only causality state
python opkit/benchmarks/check_corpus.py --details report.txt  # what was reported of misses, wrong causes and alarms
python opkit/benchmarks/check_corpus.py --page opkit/docs/results/check.md
"""

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

KIT = Path(__file__).parents[1]
sys.path[:0] = [str(KIT / "tests"), str(KIT.parent / "benchmarks")]

from isolation import isolate  # noqa: E402  # after the path
from markdown import environment, replace_table  # noqa: E402

from corpus.entries import Entry, load_entries  # noqa: E402
from corpus.judge import Judgement, judge, torch_notices  # noqa: E402

COLUMNS = (
    "category", "faults", "right cause", "wrong cause", "missed", "healthy", "alarms", "median s", "max s",
    "torch: noticed", "torch: alarms",
)  # fmt: skip


def run(entry: Entry, *, compiled: bool | None, peers: bool, timeout: float) -> Judgement:
    """Judge an entry in processes of its own: one for `opkit.check`, one for torch's tests."""
    result = isolate(lambda: judge(entry, compiled=compiled), timeout)
    if isinstance(result, str):
        result = Judgement(entry.name, "wrong" if entry.cause else "alarm", result, timeout)
    if not peers:
        return result
    noticed = isolate(lambda: torch_notices(entry), timeout)
    return Judgement(**{**result.json(), "noticed": noticed})


def run_all(entries: Sequence[Entry], workers: int, **options: Any) -> Iterator[Judgement]:
    """Judge all entries, and show the progress."""
    with ThreadPoolExecutor(workers) as pool:
        for judgement in pool.map(lambda entry: run(entry, **options), entries):
            print(f"{judgement.verdict:6} {judgement.seconds:5.1f} s {judgement.name}", file=sys.stderr)
            yield judgement


def table(entries: dict[str, Entry], judgements: Sequence[Judgement]) -> Iterator[str]:
    """One row for each category, one for all, and one for the third that was held out."""
    yield "| " + " | ".join(COLUMNS) + " |"
    yield "|---|" + "---:|" * 10
    for category in sorted({entry.category for entry in entries.values()}):
        rows = [j for j in judgements if entries[j.name].category == category]
        yield from table_row(category.replace("_", " "), entries, rows)
    yield from table_row("**all**", entries, judgements)
    yield from table_row("of these, held out", entries, [j for j in judgements if entries[j.name].held_out])


def table_row(title: str, entries: dict[str, Entry], rows: Sequence[Judgement]) -> Iterator[str]:
    if not rows:
        return
    count = {
        verdict: sum(j.verdict == verdict for j in rows) for verdict in ("right", "wrong", "missed", "clean", "alarm")
    }
    faults = [j for j in rows if entries[j.name].cause]
    seconds = [j.seconds for j in rows]
    noticed = sum(bool(j.noticed) for j in faults)
    alarms = sum(bool(j.noticed) for j in rows if not entries[j.name].cause)
    cells = [
        title, len(faults), count["right"], count["wrong"], count["missed"], len(rows) - len(faults), count["alarm"],
        f"{statistics.median(seconds):.2f}", f"{max(seconds):.1f}", noticed, alarms,
    ]  # fmt: skip
    yield "| " + " | ".join(map(str, cells)) + " |"


def details(entries: dict[str, Entry], judgements: Sequence[Judgement], held_out: bool) -> Iterator[str]:
    """What was reported of each operator that was misjudged."""
    for j in judgements:
        entry = entries[j.name]
        if j.verdict not in ("right", "clean") and entry.held_out == held_out:
            yield f"{j.verdict.upper():6} {j.name} ({entry.make}), expected: {entry.cause or 'no alarm'}"
            yield f"       reported: {j.reported or 'nothing'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=(), help="Categories, or names of entries")
    parser.add_argument("--compiled", action="store_true", help="Run the rows that compile for every operator")
    parser.add_argument("--no-torch", action="store_true", help="Leave torch's own tests out")
    parser.add_argument("--slow", action="store_true", help="Include operators that are built from C++")
    parser.add_argument("--workers", type=int, default=2, help="Processes at a time")
    parser.add_argument("--timeout", type=float, default=120.0, help="Seconds for one operator")
    parser.add_argument("--details", type=Path, help="File for what was reported of misjudged operators")
    parser.add_argument("--held-out", action="store_true", help="Write the details of the third that is held out")
    parser.add_argument("--page", type=Path, help="Markdown page whose table `corpus` is replaced")
    arguments = parser.parse_args()
    entries = load_entries()
    judge(entries["gradients.cosine_sign"], compiled=False)  # what it imports lazily, forks need not import again
    selected = [
        entry
        for name, entry in entries.items()
        if (not arguments.only or {name, entry.category} & set(arguments.only)) and (arguments.slow or not entry.slow)
    ]
    judgements = list(run_all(
        selected, arguments.workers, compiled=arguments.compiled or None, peers=not arguments.no_torch,
        timeout=arguments.timeout,
    ))  # fmt: skip
    lines = "\n".join(table(entries, judgements))
    print(lines)
    if arguments.details:
        text = "\n".join(details(entries, judgements, arguments.held_out))
        arguments.details.write_text(f"{environment('check_corpus')}\n\n{lines}\n\n{text}\n")
    if arguments.page:
        replace_table(
            arguments.page, "corpus", f"{lines}\n\n{environment('Rows that compile run for faults of compilers')}"
        )


if __name__ == "__main__":
    main()
