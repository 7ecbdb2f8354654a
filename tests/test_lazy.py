"""Lazy packages: the names that are imported on first use are those that type checkers and editors read."""

import ast
import importlib
import operator
import subprocess
import sys
from pathlib import Path

import pytest

import torchcommodity

ROOT = Path(torchcommodity.__file__).parent
LAZY = [path for path in sorted(ROOT.rglob("__init__.py")) if "lazy_names(" in path.read_text()]


def typing_imports(path: Path, package: str) -> dict[str, str]:
    """Name -> module, relative to the package, of the imports under `if TYPE_CHECKING:`."""
    body = ast.parse(path.read_text()).body
    (block,) = [node for node in body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    modules = {alias.name: f"{node.module}.".removeprefix(f"{package}.") for node in imports for alias in node.names}
    return {name: module.rstrip(".") for name, module in modules.items()}


@pytest.mark.parametrize("path", LAZY, ids=lambda path: path.parent.name)
def test_lazy_names_are_those_of_type_checkers(path: Path) -> None:
    package = importlib.import_module(".".join(["torchcommodity", *path.parent.relative_to(ROOT).parts]))
    lazy = {name: module for module, names in package._MODULES.items() for name in names if name != "__version__"}
    assert lazy == typing_imports(path, package.__name__)
    assert dir(package) == sorted(package.__all__)


def test_lazy_package_has_no_other_names() -> None:
    with pytest.raises(AttributeError, match=r"module 'torchcommodity.data' has no attribute 'panel'"):
        operator.attrgetter("panel")(torchcommodity.data)


def test_lazy_name_imports_its_module_only() -> None:
    code = "import sys; from torchcommodity.data import printable; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"
