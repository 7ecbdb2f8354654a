"""The API reference: one page for every room and every public part of a room, from their docstrings."""

import ast
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

PACKAGE = Path(__file__).parents[2] / "torchcommodity"
LEFT_OUT = {"cli"}  # its words are `torchcommodity --help`


def on_files(files: Files, config: MkDocsConfig) -> None:
    pages = []
    for name in _modules():
        content = f"# torchcommodity.{name}\n\n::: torchcommodity.{name}\n"
        files.append(File.generated(config, f"reference/{name}.md", content=content))
        pages.append({name: f"reference/{name}.md"})
    (section,) = [entry["Reference"] for entry in config.nav if "Reference" in entry]
    section.extend(pages)


def _modules() -> Iterator[str]:
    """Every room, and behind it the modules that it exports; of one that exports nothing, its packages.

    Nothing is imported: torch would take its time.
    """
    for path in sorted(PACKAGE.iterdir()):
        room = (path / "__init__.py").exists() or path.suffix == ".py"
        if room and path.name[0] != "_" and path.stem not in LEFT_OUT:
            yield path.stem
            yield from _parts(path)


def _parts(room: Path) -> Iterator[str]:
    source = room / "__init__.py" if room.is_dir() else room
    text = source.read_text()
    if room.is_dir() and "__all__" not in text:
        yield from (f"{room.stem}.{path.parent.name}" for path in sorted(room.glob("*/__init__.py")))
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and node.module == f"torchcommodity.{room.stem}":
            yield from (f"{room.stem}.{name.name}" for name in node.names if name.name[0] != "_")
