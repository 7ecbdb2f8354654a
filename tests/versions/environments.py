"""One environment at a time: a Python, a torch, and the wheel with what it depends on, installed by uv."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

SEARCH = ("PATH", "HOME", "TMPDIR", "LANG", "LD_LIBRARY_PATH")  # all that a part gets of the caller's environment


class MissingError(Exception):
    """This machine or the index has no such Python or wheel: a row that is skipped, with the reason."""


class InstallError(Exception):
    """uv failed for another reason, such as the network."""


def uv(*arguments: str, text: str = "") -> str:
    """Run uv; its error as `MissingError` if there is no such package, else as `InstallError`."""
    process = subprocess.run([sys.executable, "-m", "uv", *arguments], input=text, capture_output=True, text=True)
    if not process.returncode:
        return process.stdout
    missing = "No solution found" in process.stderr or "No interpreter found" in process.stderr
    raise (MissingError if missing else InstallError)(explain(process.stderr))


def explain(stderr: str) -> str:
    """The hints of uv in one line; without any, the error."""
    text = " ".join(re.sub(r"[^\x00-\x7f]", " ", stderr).split())
    hints = [hint.strip() for hint in re.split(r"\bhint: ", text)[1:]]
    start = max(text.find("error: "), text.find("No solution found"), 0)
    return " ".join(hints or [text[start:]])[:400]


@contextmanager
def environment(folder: Path, python: str, keep: bool) -> Iterator[Path]:
    """The Python of a new virtual environment, which is removed afterwards."""
    try:
        create(folder, python)
        yield folder / "bin" / "python"
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def create(folder: Path, python: str) -> None:
    """An empty virtual environment; `MissingError` if uv neither finds nor downloads this Python."""
    try:
        uv("venv", "--no-project", "--clear", "--python", python, str(folder))
    except (InstallError, MissingError) as error:
        raise MissingError(f"uv neither finds nor downloads Python {python}: {error}") from error


def install(python: Path, torch: str, wheel: Path) -> str:
    """Install the newest patch release of torch and the wheel; what is missing of the extra `forecast`, in words."""
    command = ["pip", "install", "--python", str(python), "--only-binary", ":all:", *torch_index(), f"torch=={torch}.*"]
    command += ["--find-links", str(wheel.parent)]  # torch-opkit
    try:
        uv(*command, f"{wheel}[forecast]")
    except MissingError as missing:
        uv(*command, str(wheel))
        return f"without the extra forecast: {missing}"
    return ""


@cache
def torch_index() -> tuple[str, ...]:
    """Options for the CPU builds of PyTorch's own index, if it can be reached."""
    try:
        uv("pip", "compile", "--no-deps", "--torch-backend", "cpu", "-", text="torch")
    except (InstallError, MissingError) as error:
        print(f"PyTorch's index of CPU builds is not reached, so PyPI's builds, with CUDA on Linux: {error}")
        return ()
    return "--torch-backend", "cpu"


def variables(folder: Path) -> dict[str, str]:
    """Environment variables of a part: no compiler, no checkout, and nothing of the user's own files."""
    caller = {name: os.environ[name] for name in SEARCH if name in os.environ}
    own = {
        "PATH": str(folder / "bin"),
        "TORCHCOMMODITY_CACHE": str(folder / "cache"),
        "TORCH_OPKIT_CACHE": str(folder / "native"),
    }
    return caller | own | {"TORCHCOMMODITY_STORE": str(folder / "prices.duckdb")}
