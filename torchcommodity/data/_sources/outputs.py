"""Outputs and inputs: which paths a source names, and how no output ever replaces an input."""

import glob
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from torchcommodity.data._sources.table_name import parse_table_name

NOT_FILES = re.compile(r"(store|fred|eia):|\w+://|(embedded|monthly|auto|none)$")
OutputKind = Literal["file", "folder", "database"]
SQL_NAME = re.compile(r"'((?:[^']|'')*)'|\"([^\"]*)\"|\$\$(.*?)\$\$|([\w./~-]+\.\w+)", re.DOTALL)  # may name a file
_inputs: ContextVar[tuple[str, ...]] = ContextVar("inputs", default=())


@contextmanager
def protect_inputs(*sources: str | os.PathLike[str]) -> Iterator[None]:
    """Within this context, `write_atomic` and `check_output` reject an output that would replace one of the sources.

    >>> from torchcommodity.data import write_atomic
    >>> path = getfixture("tmp_path") / "prices.csv"
    >>> path = write_atomic(path, b"date,WTI")
    >>> with protect_inputs(path):
    ...     path = write_atomic(path, b"")
    Traceback (most recent call last):
    ValueError: ...prices.csv: expected an output apart from the inputs; got a path that is the input ...prices.csv
    """
    token = _inputs.set((*_inputs.get(), *(os.fspath(source) for source in sources)))
    try:
        yield
    finally:
        _inputs.reset(token)


def check_output(
    output: str | os.PathLike[str],
    *sources: str | os.PathLike[str],
    kind: OutputKind = "file",
    label: str = "",
) -> None:
    """Reject an output that is one of the sources, lies in one, or contains one, by what their paths resolve to.

    A source is a file, a folder, a glob pattern, `FILE:TABLE`, or `sql:` with files in the query; any other is ignored.

    Args:
        output: path to write.
        sources: inputs, in addition to those of `protect_inputs`.
        kind: "file", which is replaced; "folder", to which files are added; "database", to which tables are added, so
            that a named table of the same file is another one.
        label: start of the message, such as the name of an option; default: the output.

    Raises:
        ValueError: the output is an input or lies in one; a folder contains an input.
    """
    target = Path(os.path.realpath(output))
    for source in (*(os.fspath(source) for source in sources), *_inputs.get()):
        paths = _source_paths(source)
        if kind == "database" and source not in paths and not source.startswith("sql:"):
            paths = [path for path in paths if Path(os.path.realpath(path)) != target]  # another table of the file
        for path in paths:
            if relation := _relation(target, path, kind == "folder"):
                received = f"{output}, which" if label else "a path that"
                expected = "expected an output apart from the inputs"
                raise ValueError(f"{label or output}: {expected}; got {received} {relation} {source}")


def _source_paths(source: str) -> list[str]:
    """Existing paths, and glob patterns, that a source names."""
    if NOT_FILES.match(source):
        return []
    if os.path.exists(source):
        return [source]
    if source.startswith("sql:"):
        groups = SQL_NAME.findall(source.removeprefix("sql:"))
        names = [next(filter(None, names), "").removeprefix("file://") for names in groups]
        return [name for name in names if os.path.isfile(name) or glob.has_magic(name)]
    table = parse_table_name(source)
    names = [table.file if table else source]
    return [name for name in names if os.path.exists(name) or glob.has_magic(name)]


def _relation(target: Path, source: str, is_folder: bool) -> str:
    """How a resolved output is related to a path or glob pattern, in words; empty if it is apart."""
    path = Path(os.path.realpath(source))
    if os.path.exists(source):
        if path == target or (target.exists() and path.samefile(target)):
            return "is the input"
        if path.is_dir() and path in target.parents:
            return "lies in the input"
        return "contains the input" if is_folder and target in path.parents else ""
    files = [Path(os.path.realpath(name)) for name in glob.glob(source, recursive=True)]
    if target in files or (is_folder and any(target in file.parents for file in files)):
        return "is or contains files of the input"
    results = (target, target / "run=0" / "results.parquet")[: 1 + is_folder]
    return "would be read as part of the input" if any(_matches(x.parts, path.parts) for x in results) else ""


def _matches(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Whether `glob.glob` finds a path by a pattern, both in parts."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return _matches(parts, pattern[1:]) or (bool(parts) and _matches(parts[1:], pattern))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])
