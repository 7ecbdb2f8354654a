"""A package with one operator, from a template that builds and passes the contract before any change."""

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
    """Create the package `folder/name` with one operator. If it fails, nothing is left behind.

    Args:
        name: name of the operator, its namespace and its package: a Python identifier in lower case.
        folder: parent folder.
        cuda: include a CUDA kernel.

    Returns:
        Path of the package.

    Raises:
        ValueError: `name` is not such an identifier.
        FileExistsError: `folder/name` exists.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import torch_opkit as opkit
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sorted(path.name for path in opkit.new("halve", Path(folder)).iterdir())
        ['.gitignore', 'README.md', 'halve', 'pyproject.toml', 'setup.py', 'tests']
    """
    if not re.fullmatch("[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise ValueError(f"new: name must be a Python identifier in lower case; got {name!r}")
    target = folder / name
    if target.exists():
        raise FileExistsError(f"new: {target} exists; choose another name or folder")
    folder.mkdir(parents=True, exist_ok=True)
    values = {
        "name": name,
        "sources": f'"{name}/{name}.cpp"' + (f', "{name}/{name}.cu"' if cuda else ""),
        "cuda_row": f"\n| `{name}/{name}.cu` | the CUDA kernel |" if cuda else "",
        "kernels": "the kernels" if cuda else "the kernel",
    }
    temporary = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=folder))
    try:
        for source, file in FILES.items():
            if cuda or not source.endswith(".cu.in"):
                path = temporary / file.format(name=name)
                path.parent.mkdir(exist_ok=True)
                path.write_text(Template((TEMPLATE / source).read_text()).substitute(values))
        temporary.chmod(0o755)
        temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target
