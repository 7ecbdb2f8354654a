"""The native library out of a wheel in dist/, for a clone on a machine without a C++ compiler.

`python native/prebuilt.py` unpacks it if the wheel was built from the commit of this clone.
"""

import platform
import subprocess
import sys
import zipfile
from pathlib import Path


def unpack(root: Path) -> str:
    """Unpack the library into the package of the clone at `root`; returns what was done, in one line, or ""."""
    built_from, dist = root / "dist" / "commit", root / "dist"
    system = {"linux": "linux", "darwin": "macosx"}.get(sys.platform, sys.platform)
    machine = f"_{platform.machine()}.whl"
    all_wheels = sorted(dist.glob("torchcommodity-*.whl"))
    wheels = [path for path in all_wheels if system in path.name and path.name.endswith(machine)]  # for this machine
    if not wheels or not built_from.is_file():
        return ""
    commit, current = built_from.read_text().strip(), _commit(root)
    if commit != current or commit.endswith("-dirty"):
        return f"{wheels[-1].name} is not used: it was built from {commit[:18]}, this clone is at {current[:18]}"
    with zipfile.ZipFile(wheels[-1]) as wheel:
        libraries = [name for name in wheel.namelist() if name.endswith(".so")]
        wheel.extractall(root, libraries)
    return f"no C++ compiler: the native library is that of {wheels[-1].name}, built from this commit"


def _commit(root: Path) -> str:
    """The commit of the clone, with "-dirty" if its files were changed since; "" outside a clone."""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude", "*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (FileNotFoundError, subprocess.CalledProcessError):
        return ""


if __name__ == "__main__":
    line = unpack(Path(__file__).resolve().parents[1])
    sys.stdout.write(f"{line}\n" if line else "")
