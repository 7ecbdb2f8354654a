"""The API reference: one page for every room and every public part of a room, from their docstrings."""

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import torchcommodity

LEFT_OUT = {"cli"}  # its words are `torchcommodity --help`


def on_files(files: Files, config: MkDocsConfig) -> None:
    pages = []
    for module in _modules():
        name = module.__name__.removeprefix("torchcommodity.")
        files.append(File.generated(config, f"reference/{name}.md", content=_page(module)))
        pages.append({name: f"reference/{name}.md"})
    (section,) = [entry for entry in config.nav if "Reference" in entry]
    section["Reference"].extend(pages)


def _modules() -> list[ModuleType]:
    names = [info.name for info in iter_modules(torchcommodity.__path__) if info.name[0] != "_"]
    rooms = [import_module(f"torchcommodity.{name}") for name in sorted(set(names) - LEFT_OUT)]
    return [module for room in rooms for module in (room, *_parts(room))]


def _parts(room: ModuleType) -> list[ModuleType]:
    found = [getattr(room, name) for name in getattr(room, "__all__", [])]
    return [part for part in found if isinstance(part, ModuleType)]


def _page(module: ModuleType) -> str:
    return f"# {module.__name__}\n\n::: {module.__name__}\n"
