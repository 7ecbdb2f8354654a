"""The structure of the library: which package imports which, what is public, how large a file may grow."""

import ast
import functools
import importlib
import inspect
import sys
from pathlib import Path

import pytest

import torchcommodity

ROOT = Path(torchcommodity.__file__).parent
LEVELS = {
    "data": 1, "ops": 2, "losses": 2, "nn": 3, "charts": 3, "models": 4, "training": 5, "risk": 6,
    "scenarios": 6, "forecast": 7, "portfolio": 8, "optimize": 8, "export": 8, "scoreboard": 8, "batch": 9,
    "serve": 9, "report": 9, "cli": 10,
}  # fmt: skip
DATA_ROOMS = {  # folders of `data`; the modules beside them, which join all of them, come last
    "_core": 0, "_quality": 1, "_covariates": 1, "_sources": 2, "_contracts": 3, "_store": 3,
}  # fmt: skip
CORE = {"ops", "nn", "losses", "models"}
FILES = sorted(ROOT.rglob("*.py"))
PACKAGES = sorted(path.parent for path in FILES if path.name == "__init__.py")
PUBLIC = [path for path in PACKAGES if not any(part.startswith("_") for part in path.relative_to(ROOT).parts)]


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def module_name(path: Path) -> str:
    return ".".join(["torchcommodity", *path.relative_to(ROOT).parts])


per_package = pytest.mark.parametrize("package", [module_name(path) for path in PUBLIC])


def package_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def source_module(node: ast.ImportFrom, path: Path) -> str:
    """The full name of the module in `from module import name`, of a relative import too."""
    folders = path.relative_to(ROOT.parent).parts[: -node.level] if node.level else ()
    return ".".join([*folders, *([node.module] if node.module else [])])


@functools.cache
def imports_of_other_packages(path: Path) -> list[tuple[str, str]]:
    """Module and name of every `from torchcommodity.other import name`, inside functions too; and of torch_opkit."""
    imports = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and (module := source_module(node, path)).startswith("torch"):
            for alias in node.names:
                dotted = f"{module}.{alias.name}".split(".")
                inside = dotted[0] == "torchcommodity" and dotted[1] in LEVELS and dotted[1] != package_of(path)
                if inside or dotted[0] == "torch_opkit":
                    imports.append((module, alias.name))
    return imports


def test_package_imports_only_lower_packages() -> None:
    for path in FILES:
        level = LEVELS.get(package_of(path), 11)
        imported = {f"{module}.{name}".split(".")[1] for module, name in imports_of_other_packages(path)}
        assert {name for name in imported if LEVELS.get(name, 0) >= level} == set(), path


def test_package_imports_only_public_names_of_others() -> None:
    for path in FILES:
        for module, name in imports_of_other_packages(path):
            if module == "torchcommodity":
                continue
            assert not any(part.startswith("_") for part in module.split(".")), f"{path}: {module} is private"
            assert name in importlib.import_module(module).__all__, f"{path}: {name} is not in {module}.__all__"


def data_room(module: str) -> int:
    """The level of a module of `data`."""
    return DATA_ROOMS.get(module.split(".")[2], 4)


def test_rooms_of_data_import_only_lower_rooms() -> None:
    for path in sorted((ROOT / "data").glob("*/**/*.py")):
        own = path.relative_to(ROOT).parts[1]
        for node in ast.walk(tree(path)):
            if not isinstance(node, ast.ImportFrom):
                continue
            for module in (f"{source_module(node, path)}.{alias.name}" for alias in node.names):
                if module.startswith("torchcommodity.data.") and module.split(".")[2] != own:
                    assert data_room(module) < DATA_ROOMS[own], f"{path} imports {module}"


def test_files_stay_small() -> None:
    for path in FILES:
        assert len(path.read_text().splitlines()) <= 500, path
        assert path.stem not in {"utils", "common", "helpers"}, path


def test_every_module_of_a_package_is_private() -> None:
    public = {"__main__.py"}
    for path in FILES:
        parts = path.relative_to(ROOT).parts
        if path.name != "__init__.py" and not any(part.startswith("_") for part in parts):
            assert str(path.relative_to(ROOT)) in public


@per_package
def test_all_is_sorted_complete_and_documented(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__doc__
    assert module.__all__ == sorted(module.__all__, key=lambda name: (not name.isupper(), name.islower(), name))
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(inspect.unwrap(value)):
            assert (value.__doc__ or "").strip(), f"{package}.{name} has no docstring"
    defined = {name for name in vars(module) if not name.startswith("_") and not inspect.ismodule(vars(module)[name])}
    imported = {name for name in defined if getattr(vars(module)[name], "__module__", package) != package}
    own = {name for name in imported if str(vars(module)[name].__module__).startswith(f"{package}.")}
    assert own <= set(module.__all__)


def test_import_of_the_library_is_lazy() -> None:
    import subprocess

    code = "import sys, torchcommodity as tc; print('torch' in sys.modules); tc.losses.pinball; tc.fit"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_dir_of_the_library_lists_packages_and_everyday_names() -> None:
    assert {*LEVELS, "Panel", "fit", "predict", "read", "__version__"} <= set(dir(torchcommodity))


def test_core_needs_only_torch_and_numpy() -> None:
    for path in FILES:
        if package_of(path) in CORE:
            top = [node for node in tree(path).body if isinstance(node, ast.Import | ast.ImportFrom)]
            names = {
                source_module(node, path) if isinstance(node, ast.ImportFrom) else node.names[0].name for node in top
            }
            roots = {name.split(".")[0] for name in names}
            assert roots <= {"torch", "numpy", "torch_opkit", "torchcommodity"} | set(sys.stdlib_module_names), path


def test_library_uses_the_runtime_of_the_kit_only() -> None:
    """The bench of authors of operators, which takes long to import, is for them."""
    bench = {"check", "diagnose", "graph", "external", "new", "load", "load_inline", "extension", "override_coverage"}
    for path in FILES:
        names = {name for module, name in imports_of_other_packages(path) if module == "torch_opkit"}
        assert not names & bench, f"{path}: {names & bench}"
