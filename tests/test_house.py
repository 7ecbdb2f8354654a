"""The structure of the house: which room imports which, what is public, how large a file may grow."""

import ast
from pathlib import Path

import pytest

import torchcommodity

PACKAGE = Path(torchcommodity.__file__).parent
FLOORS = {
    "opkit": 0, "data": 1, "ops": 2, "nn": 3, "losses": 4, "models": 5, "forecast": 6, "portfolio": 7,
    "optimize": 8, "serve": 9, "report": 9, "cli": 10,
}  # fmt: skip
MODULES = sorted(PACKAGE.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return {name.split(".")[1] for name in names if name.startswith("torchcommodity.")} & FLOORS.keys()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_room_imports_only_rooms_below_it(path: Path) -> None:
    if room(path) not in FLOORS:
        return
    above = {name for name in imported_rooms(path) - {room(path)} if FLOORS[name] >= FLOORS[room(path)]}
    assert not above, f"{room(path)} must not import {above}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_stay_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400
    assert path.stem not in {"utils", "common", "helpers"}


def test_every_public_name_is_there() -> None:
    for module in (torchcommodity, torchcommodity.nn, torchcommodity.ops, torchcommodity.opkit):
        assert module.__all__ == sorted(module.__all__, key=lambda name: (not name.isupper(), name.islower(), name))
        assert all(hasattr(module, name) for name in module.__all__)


def test_the_core_needs_only_torch_and_numpy() -> None:
    allowed = {"torch", "numpy", "torchcommodity"}
    import sys

    for path in MODULES:
        if room(path) in {"opkit", "ops", "nn", "losses", "models", "__init__"}:
            tree = ast.parse(path.read_text())
            top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
            names = {n.module if isinstance(n, ast.ImportFrom) else n.names[0].name for n in top}
            foreign = {name.split(".")[0] for name in names if name} - allowed - set(sys.stdlib_module_names)
            assert not foreign, f"{path.name} imports {foreign} at its top"
