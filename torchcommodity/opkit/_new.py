"""A new operator: a complete package, which builds and keeps its contract before a line of it is changed."""

import keyword
import re
import shutil
import tempfile
from pathlib import Path
from string import Template

TEMPLATE = Path(__file__).parent / "template"
FILES = {
    "pyproject.toml.in": "pyproject.toml",
    "setup.py.in": "setup.py",
    "README.md.in": "README.md",
    "gitignore.in": ".gitignore",
    "package/init.py.in": "{name}/__init__.py",
    "package/operator.py.in": "{name}/{name}.py",
    "package/operator.cpp.in": "{name}/{name}.cpp",
    "package/operator.cu.in": "{name}/{name}.cu",
    "tests/test_operator.py.in": "tests/test_{name}.py",
}


def new(name: str, folder: Path, *, cuda: bool = False) -> Path:
    """Write the package `folder/name` and give its path. The folder appears whole, or not at all.

    Args:
        name: of the operator, its namespace and its package; a Python identifier in lower case.
        folder: where the package is put.
        cuda: also write a CUDA kernel.

    Raises:
        ValueError: `name` is no such identifier.
        FileExistsError: there is a `folder/name` already.
    """
    if not re.fullmatch("[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise ValueError(f"op new: a name must be a Python identifier in lower case; got {name!r}")
    target = folder / name
    if target.exists():
        raise FileExistsError(f"op new: {target} is there already; choose another name or folder")
    folder.mkdir(parents=True, exist_ok=True)
    workplace = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=folder))
    try:
        _write(workplace, name, cuda)
        workplace.chmod(0o755)
        workplace.rename(target)
    finally:
        shutil.rmtree(workplace, ignore_errors=True)
    return target


def _write(folder: Path, name: str, cuda: bool) -> None:
    sources = [f'"{name}/{name}.cpp"', *([f'"{name}/{name}.cu"'] if cuda else [])]
    row = f"\n| `{name}/{name}.cu` | the CUDA kernel |" if cuda else ""
    kernels = "the kernels" if cuda else "the kernel"
    for source, target in FILES.items():
        if source.endswith(".cu.in") and not cuda:
            continue
        text = Template((TEMPLATE / source).read_text())
        path = folder / target.format(name=name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.substitute(name=name, sources=", ".join(sources), cuda_row=row, kernels=kernels))
