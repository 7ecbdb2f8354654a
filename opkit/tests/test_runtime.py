"""The structure of the kit: its public modules and their imports; libraries need nothing of the bench of authors."""

import ast
import importlib
import inspect
import sys
from pathlib import Path

import pytest

import torch_opkit as opkit

ROOT = Path(opkit.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
PUBLIC = ("torch_opkit", "torch_opkit.arguments", "torch_opkit.build", "torch_opkit.testing")
RUNTIME = {
    "_autograd", "_cases", "_implements", "_live", "_metadata", "_mutation", "_native", "_op", "_torch_private",
    "_vjp", "_widest", "arguments",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(RUNTIME))
def test_runtime_imports_only_the_runtime(name: str) -> None:
    imports = [n for n in ast.walk(ast.parse((ROOT / f"{name}.py").read_text())) if isinstance(n, ast.ImportFrom)]
    dotted = [f"{node.module}.{alias.name}" for node in imports for alias in node.names]
    own = [path.split(".")[1] for path in dotted if path.startswith("torch_opkit.")]
    assert set(own) <= RUNTIME


def test_kit_needs_only_torch_and_numpy() -> None:
    for path in FILES:
        top = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Import | ast.ImportFrom)]
        names = [node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name for node in top]
        assert {name.split(".")[0] for name in names} <= {"torch", "numpy", "torch_opkit", *sys.stdlib_module_names}, (
            path
        )


def test_every_other_module_is_private() -> None:
    for path in FILES:
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        private = any(part.startswith("_") and part != "__init__" for part in parts)
        assert private or ".".join(parts).removesuffix(".__init__") in PUBLIC, path
        assert len(path.read_text().splitlines()) <= 500, path


@pytest.mark.parametrize("name", PUBLIC)
def test_all_is_sorted_and_documented(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    assert module.__all__ == sorted(module.__all__, key=lambda name: (not name.isupper(), name.islower(), name))
    for public in module.__all__:
        value = getattr(module, public)
        if inspect.isclass(value) or inspect.isfunction(inspect.unwrap(value)):
            assert (value.__doc__ or "").strip(), f"{name}.{public} has no docstring"


def test_versions_of_both_distributions_are_equal() -> None:
    library = (ROOT.parents[1] / "torchcommodity" / "__init__.py").read_text()
    assert f'__version__ = "{opkit.__version__}"' in library
