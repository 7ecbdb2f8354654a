"""`make release-check`: what keeps this commit and dist/ from being released, one line each."""

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from packaging.utils import parse_sdist_filename, parse_wheel_filename
from packaging.version import Version

from version import CHANGELOG, KIT, PACKAGE, package_version, unreleased

DIST = Path("dist")
FILES = {
    "source distribution": r"^torchcommodity-.*\.tar\.gz$",
    "source distribution of torch-opkit": r"^torch_opkit-.*\.tar\.gz$",
    "wheel of torch-opkit": r"^torch_opkit-.*-py3-none-any\.whl$",
    "wheel for Linux on x86_64": r"manylinux_\d+_\d+_x86_64\.whl$",
    "wheel for Linux on aarch64": r"manylinux_\d+_\d+_aarch64\.whl$",
    "wheel for macOS on arm64": r"macosx_\d+_\d+_arm64\.whl$",
}
RELATIVE_LINK = re.compile(r"\]\((?!https?://|#)([^)\s]+)")


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout.strip()


def tree_problems() -> Iterator[str]:
    if changes := git("status", "--porcelain").splitlines():
        yield f"working tree: expected everything committed; got {len(changes)} changes, such as {changes[0].strip()}"


def tag_problems(version: Version) -> Iterator[str]:
    here = set(git("tag", "--points-at", "HEAD", "--list", "v[0-9]*").split())
    earlier = set(git("tag", "--merged", "HEAD", "--list", "v[0-9]*").split()) - here
    last = max((Version(tag[1:]) for tag in earlier), default=None)
    if last is not None and version <= last:
        yield f"{PACKAGE}: expected a version above {last}, the last tag; got {version}; run make version"
    if here - {f"v{version}"}:
        yield f"tag: expected v{version}, the version in {PACKAGE}; got {', '.join(sorted(here))}"


def kit_problems(version: Version) -> Iterator[str]:
    if (other := package_version(KIT)) != version:
        yield f"{KIT}: expected version {version}, that of {PACKAGE}; got {other}; run make version"


def changelog_problems(version: Version) -> Iterator[str]:
    text = CHANGELOG.read_text()
    if not re.search(rf"^## \[{re.escape(str(version))}\] - \d{{4}}-\d\d-\d\d$", text, re.MULTILINE):
        yield f"{CHANGELOG}: expected a section ## [{version}] - DATE; got none; run make version VERSION={version}"
    elif f"\n[{version}]: " not in text:
        yield f"{CHANGELOG}: expected a link [{version}]: ADDRESS in the last lines; got none"
    if changes := unreleased(text):
        yield f"{CHANGELOG}: expected nothing under [Unreleased]; got {changes.splitlines()[0]!r}, ..."


def dist_problems(version: Version) -> Iterator[str]:
    head, record = git("rev-parse", "HEAD"), DIST / "commit"
    commit = record.read_text().strip() if record.exists() else "no such file"
    if commit != head:
        yield f"{record}: expected {head}, this commit; got {commit}; run make wheel"
    files = sorted([*DIST.glob("*.whl"), *DIST.glob("*.tar.gz")])
    for kind, pattern in FILES.items():
        matches = [file.name for file in files if re.search(pattern, file.name)]
        if len(matches) != 1:
            yield f"{DIST}: expected one {kind}; got {', '.join(matches) or 'none'}"
    for file in files:
        parse = parse_wheel_filename if file.suffix == ".whl" else parse_sdist_filename
        if (other := parse(file.name)[1]) != version:
            yield f"{file}: expected version {version}; got {other}"
    yield from metadata_problems(files)
    yield from link_problems(files)


def metadata_problems(files: list[Path]) -> Iterator[str]:
    if not files:
        return
    command = [sys.executable, "-m", "twine", "--no-color", "check", "--strict", *map(str, files)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        yield f"twine check: expected metadata that PyPI takes; got\n{process.stdout}{process.stderr}"


def link_problems(files: list[Path]) -> Iterator[str]:
    for file in files:
        if file.suffix != ".whl":
            continue  # the wheels are built from the source distribution
        with zipfile.ZipFile(file) as wheel:
            names = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
            description = "".join(wheel.read(name).decode().partition("\n\n")[2] for name in names)
        if match := RELATIVE_LINK.search(description):
            yield f"{file}: expected a description with absolute links, as PyPI has no other files; got {match[1]}"


def main() -> None:
    version = package_version()
    checks = (
        tree_problems(),
        tag_problems(version),
        kit_problems(version),
        changelog_problems(version),
        dist_problems(version),
    )
    if problems := [f"release-check: {problem}" for problem in chain(*checks)]:
        sys.exit("\n".join(problems))
    print(f"release-check: torchcommodity {version} can be released from commit {git('rev-parse', '--short', 'HEAD')}")


if __name__ == "__main__":
    main()
