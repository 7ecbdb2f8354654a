"""The runtime of operators, which libraries import, needs nothing of the bench of their authors."""

import ast
from pathlib import Path

import pytest

from torchcommodity import opkit

ROOT = Path(opkit.__file__).parent
RUNTIME = {
    "_autograd", "_cases", "_implements", "_live", "_metadata", "_mutation", "_native", "_op", "_torch_private",
    "_widest", "arguments",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(RUNTIME))
def test_runtime_imports_only_the_runtime(name: str) -> None:
    imports = [n for n in ast.walk(ast.parse((ROOT / f"{name}.py").read_text())) if isinstance(n, ast.ImportFrom)]
    dotted = [f"{node.module}.{alias.name}" for node in imports for alias in node.names]
    own = [path.split(".")[2] for path in dotted if path.startswith("torchcommodity.")]
    assert set(own) <= RUNTIME


def test_library_uses_the_runtime_only() -> None:
    """The command line offers the bench; everything else imports public names of the runtime, and the native build."""
    bench = {"check", "diagnose", "graph", "external", "new", "load", "load_inline", "extension", "override_coverage"}
    for path in ROOT.parent.rglob("*.py"):
        if path.is_relative_to(ROOT) or path.is_relative_to(ROOT.parent / "cli"):
            continue
        nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
        names = {a.name for node in nodes if node.module == "torchcommodity.opkit" for a in node.names}
        assert not names & bench, f"{path}: {names & bench}"
