"""The library of a wheel in dist/: unpacked if the wheel is for this commit and this machine."""

import platform
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from native import prebuilt

SYSTEM = "macosx_11_0" if sys.platform == "darwin" else "manylinux_2_28"
NAME = f"torchcommodity-0.1.0-py3-none-{SYSTEM}_{platform.machine()}.whl"


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with a wheel of its commit."""
    (tmp_path / "source.txt").write_text("1")
    (tmp_path / ".gitignore").write_text("dist/\n*.so\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "one")
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "commit").write_text(git(tmp_path, "rev-parse", "HEAD") + "\n")
    with zipfile.ZipFile(tmp_path / "dist" / NAME, "w") as wheel:
        wheel.writestr("torchcommodity/_C.so", "library")
        wheel.writestr("torchcommodity/other.py", "")
    return tmp_path


def test_wheel_of_this_commit_gives_its_library(clone: Path) -> None:
    assert f"the native library is that of {NAME}" in prebuilt.unpack(clone)
    assert (clone / "torchcommodity" / "_C.so").read_text() == "library"
    assert [path.name for path in (clone / "torchcommodity").iterdir()] == ["_C.so"]


def test_wheel_of_another_commit_is_not_used(clone: Path) -> None:
    git(clone, "commit", "--quiet", "--allow-empty", "--message", "two")
    assert f"{NAME} is not used: it was built from " in prebuilt.unpack(clone)
    assert not (clone / "torchcommodity").exists()


@pytest.mark.parametrize("suffix", ["", "-dirty"])
def test_wheel_is_not_used_for_changed_files(clone: Path, suffix: str) -> None:
    commit = clone / "dist" / "commit"
    commit.write_text(commit.read_text().strip() + suffix)
    (clone / "source.txt").write_text("2")
    assert "is not used" in prebuilt.unpack(clone)


def test_wheel_for_another_machine_is_ignored(clone: Path) -> None:
    (clone / "dist" / NAME).rename(clone / "dist" / "torchcommodity-0.1.0-py3-none-manylinux_2_28_other.whl")
    assert prebuilt.unpack(clone) == ""


def test_no_wheel_says_nothing(tmp_path: Path) -> None:
    assert prebuilt.unpack(tmp_path) == ""
