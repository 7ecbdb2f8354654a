"""`make version VERSION=0.2.0`: the version of both packages, and the changelogs' sections of what was unreleased."""

import re
import sys
from datetime import date
from pathlib import Path

from packaging.version import Version

PACKAGE = Path("torchcommodity/__init__.py")
CHANGELOG = Path("CHANGELOG.md")
KIT = Path("opkit/torch_opkit/__init__.py")
KIT_CHANGELOG = Path("opkit/CHANGELOG.md")
REPOSITORY = "https://github.com/torchcommodity/torchcommodity"
ASSIGNMENT = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
UNRELEASED = re.compile(r"^## \[Unreleased\]\n(.*?)(?=^## \[|^\[|\Z)", re.MULTILINE | re.DOTALL)


def package_version(package: Path = PACKAGE) -> Version:
    match = ASSIGNMENT.search(package.read_text())
    if match is None:
        raise ValueError(f'{package}: expected a line __version__ = "..."; got none')
    return Version(match[1])


def unreleased(changelog: str) -> str:
    match = UNRELEASED.search(changelog)
    if match is None:
        raise ValueError(f"{CHANGELOG}: expected a section ## [Unreleased]; got none")
    return match[1].strip()


def released(changelog: str, version: str, day: date) -> str:
    """The changelog in which what was unreleased is `version`, with the links of both headings."""
    if f"## [{version}]" in changelog or not unreleased(changelog):
        raise ValueError(f"{CHANGELOG}: expected changes under [Unreleased] and no section [{version}] yet")
    changelog = changelog.replace("## [Unreleased]\n", f"## [Unreleased]\n\n## [{version}] - {day}\n", 1)
    body, _, links = changelog.partition("\n[Unreleased]: ")
    links = "\n".join([f"[{version}]: {REPOSITORY}/releases/tag/v{version}", *links.splitlines()[1:]])
    return f"{body.rstrip()}\n\n[Unreleased]: {REPOSITORY}/compare/v{version}...main\n{links}\n"


def main(version: str) -> None:
    if not re.fullmatch(r"\d+\.\d+\.\d+(rc\d+)?", version):
        raise ValueError(f"expected a version such as 0.2.0; got {version!r}")
    today, of_kit = date.today(), KIT_CHANGELOG.read_text()
    if not unreleased(of_kit):  # both packages are released together
        of_kit = of_kit.replace("## [Unreleased]\n", "## [Unreleased]\n\nNo change but the version.\n", 1)
    changelogs = {
        CHANGELOG: released(CHANGELOG.read_text(), version, today), KIT_CHANGELOG: released(of_kit, version, today)
    }  # fmt: skip
    for path, changelog in changelogs.items():
        path.write_text(changelog)
    for package in (PACKAGE, KIT):
        package.write_text(ASSIGNMENT.sub(f'__version__ = "{version}"', package.read_text()))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except ValueError as error:
        sys.exit(f"version: {error}")
