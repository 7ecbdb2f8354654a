"""The tables of docs/results/versions.md, made of what the parts returned in each environment."""

import platform
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from markdown import environment, format_table, replace_table

PAGE = ROOT / "docs" / "results" / "versions.md"
TOLERANCES = {"har-garch": 1e-9, "har-lstm": 1e-5}  # of a log-return; the network computes in float32
HEADS = ("torch", "Python", "native operators", "contract", "threads", "GIL", "forecast", "artifacts read")
Record = dict[str, Any]  # of one environment: torch, python, skipped, note, error, parts
Numbers = Sequence["float | None"]


class FailureError(Exception):
    """What a cell of the table must say; the message goes below the table."""


def missing(records: Sequence[Record], torches: Sequence[str]) -> str:
    """The versions of torch that have neither written nor read a file, in a sentence."""
    run = {record["torch"] for record in records if "files" in record["parts"].get("artifacts", {})}
    names = [torch for torch in torches if torch not in run]
    sentence = f"Not run yet beside this wheel, neither as a writer nor as a reader: torch {', '.join(names)}.\n"
    return f"\n{sentence}" if names else ""


def write_tables(records: Sequence[Record], wheel: Path, torches: Sequence[str]) -> bool:
    """Write both tables, with what is missing of the promised versions of torch; whether nothing failed."""
    failures: list[str] = []
    environments = format_table(HEADS, [row(record, records, failures) for record in records if not record["skipped"]])
    skipped = [f"- Skipped, {label(record)}: {record['skipped']}" for record in records if record["skipped"]]
    notes = [f"- {label(record)}: {text}" for record in records for text in remarks(record)]
    failed = [f"- **FAIL** {failure}" for failure in failures]
    platforms = {part(record, "operators").get("platform", platform.platform()) for record in records}
    commit = wheel.with_name("commit").read_text()[:7]  # of the wheel; the tables may be written at a later one
    setting = environment(f"{wheel.name} of commit {commit}, {' and '.join(sorted(platforms))}")
    replace_table(
        PAGE, "environments", "\n\n".join(["", environments, "\n".join(failed + notes + skipped), setting, ""])
    )
    replace_table(PAGE, "artifacts", f"\n{matrix(records)}\n{missing(records, torches)}")
    print("\n".join([environments, *failed, *notes, *skipped, "", matrix(records)]))
    return not failures


def label(record: Record) -> str:
    return f"torch {record['torch']}, Python {record['python']}"


def remarks(record: Record) -> Iterator[str]:
    """What was left out, and the warnings of this library."""
    if record["note"]:
        yield record["note"]
    for name, result in record["parts"].items():
        yield from (f"{name} warns: {text}" for text in result.get("warnings", ()))


def row(record: Record, records: Sequence[Record], failures: list[str]) -> list[str]:
    """The cells of an environment."""
    reference = next((result for other in records if len(result := part(other, "forecast")) > 1), {})
    operators = part(record, "operators")
    cells = [str(operators.get("torch", record["torch"])), str(operators.get("python", record["python"]))]
    if record["error"]:
        failures.append(f"{label(record)}: {record['error']}")
    for name, cell in CELLS:
        result = part(record, name)
        try:
            if "error" in result:
                raise FailureError(result["error"])
            cells.append(cell(result, reference, records) if result else "")
        except FailureError as failure:
            failures.append(f"{label(record)}, {name}: {failure}")
            cells.append("**FAIL**")
    return cells


def part(record: Record, name: str) -> dict[str, Any]:
    """What a part returned; empty if it did not run."""
    result: dict[str, Any] = record["parts"].get(name, {})
    return result


def native(result: dict[str, Any], *_: Any) -> str:
    return str(result["native"])


def threads(result: dict[str, Any], *_: Any) -> str:
    if result["differing"]:
        raise FailureError(f"Python threads get other bits from {', '.join(result['differing'])}")
    return "same bits"


def gil(result: dict[str, Any], *_: Any) -> str:
    """Which import, if any, enables the GIL of a free-threaded Python."""
    if not result["python"].endswith("t"):
        return "on"
    enabled = [module for module, state in result["gil"].items() if state]
    if enabled and enabled[0].startswith("torchcommodity"):
        raise FailureError(f"the import of {enabled[0]} enables the GIL")
    return f"off; on after `import {enabled[0]}`" if enabled else "off"


def contract(result: dict[str, Any], *_: Any) -> str:
    if result["failures"]:
        raise FailureError("; ".join(result["failures"]))
    return f"{result['passed']} passed, {result['skipped']} do not apply"


def forecast(result: dict[str, Any], reference: dict[str, Numbers], _: Any) -> str:
    differences = {model: difference(result[model], reference[model]) for model in TOLERANCES}
    if large := [model for model, value in differences.items() if value > TOLERANCES[model]]:
        raise FailureError(f"a log-return of {large[0]} differs by {differences[large[0]]:.1e}")
    return ", ".join(f"{model} {value:.0e}" for model, value in differences.items())


def artifacts(result: dict[str, Any], _: Any, records: Sequence[Record]) -> str:
    cells = [read(result["files"], stem, records) for stem in result["files"]]
    if wrong := [f"{stem}: {cell}" for stem, cell in zip(result["files"], cells) if isinstance(cell, str)]:
        raise FailureError("; ".join(wrong))
    return f"{len(cells)} of {len(cells)}"


def read(files: dict[str, Any], stem: str, records: Sequence[Record]) -> "float | str":
    """How far the forecast of a file is from its writer's own; or the error."""
    torch, model = stem.removeprefix("torch-").rsplit(".", 1)
    own = [
        result[model]
        for record in records
        if record["torch"] == torch and model in (result := part(record, "forecast"))
    ]
    if isinstance(files[stem], str):
        return str(files[stem])
    if not own:
        return "there is no forecast of the version that wrote it"
    value = min(difference(files[stem], numbers) for numbers in own)
    return value if value <= TOLERANCES[model] else f"a log-return differs by {value:.1e}"


def difference(actual: Numbers, expected: Numbers) -> float:
    """Largest difference; infinite if NaNs are not the same."""
    if [x is None for x in actual] != [x is None for x in expected]:
        return float("inf")
    return max(abs(x - y) for x, y in zip(actual, expected) if x is not None and y is not None)


def matrix(records: Sequence[Record]) -> str:
    """Largest difference of a forecast by the version that wrote its file, and the one that read it."""
    versions = list(dict.fromkeys(record["torch"] for record in records if part(record, "artifacts")))
    cells = [
        [f"torch {writer}", *(_matrix_cell(records, writer, reader) for reader in versions)] for writer in versions
    ]
    return format_table(["written by", *(f"read by {reader}" for reader in versions)], cells)


def _matrix_cell(records: Sequence[Record], writer: str, reader: str) -> str:
    files = [part(record, "artifacts").get("files", {}) for record in records if record["torch"] == reader]
    values = [read(own, stem, records) for own in files for stem in own if stem.startswith(f"torch-{writer}.")]
    if not values:
        return "not read"
    return "**FAIL**" if any(isinstance(value, str) for value in values) else f"{max(map(float, values)):.0e}"


CELLS = (
    ("operators", native),
    ("contract", contract),
    ("operators", threads),
    ("operators", gil),
    ("forecast", forecast),
    ("artifacts", artifacts),
)
