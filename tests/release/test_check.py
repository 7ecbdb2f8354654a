"""`make release-check` and `make version`: a small repository that can be released, and what keeps one from it."""

import io
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
METADATA = "Metadata-Version: 2.4\nName: {0}\nVersion: {1}\nDescription-Content-Type: text/markdown\n\n# Words\n"
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "macosx_11_0_arm64")


def git(*arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@b.example", *arguments], check=True)


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "release" / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def commit() -> None:
    git("add", ".")
    git("commit", "--quiet", "--message", "Work")


def build(version: str) -> None:
    """What `make wheel` leaves in dist, without content."""
    dist = Path("dist")
    dist.mkdir(exist_ok=True)
    tags = [f"torchcommodity-{version}-py3-none-{platform}" for platform in PLATFORMS]
    for tag in (*tags, f"torch_opkit-{version}-py3-none-any"):
        name = tag.partition("-")[0]
        with zipfile.ZipFile(dist / f"{tag}.whl", "w") as wheel:
            wheel.writestr(f"{name}-{version}.dist-info/METADATA", METADATA.format(name, version))
            wheel.writestr(f"{name}-{version}.dist-info/WHEEL", "Wheel-Version: 1.0\n")
    for name in ("torchcommodity", "torch_opkit"):
        with tarfile.open(dist / f"{name}-{version}.tar.gz", "w:gz") as source:
            for file, text in {"PKG-INFO": METADATA.format(name, version), "setup.py": ""}.items():
                member = tarfile.TarInfo(f"{name}-{version}/{file}")
                member.size = len(text)
                source.addfile(member, io.BytesIO(text.encode()))
    head = subprocess.run(["git", "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    (dist / "commit").write_text(head)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 0.1.0 is released; the next one is written, committed and built."""
    monkeypatch.chdir(tmp_path)
    git("init", "--quiet")
    (tmp_path / "torchcommodity").mkdir()
    (tmp_path / "torchcommodity/__init__.py").write_text('"""Words."""\n\n__version__ = "0.0.9"\n')
    (tmp_path / "opkit/torch_opkit").mkdir(parents=True)
    (tmp_path / "opkit/torch_opkit/__init__.py").write_text('"""Words."""\n\n__version__ = "0.0.9"\n')
    (tmp_path / "opkit/CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n\n### Added\n\n- All.\n")
    (tmp_path / ".gitignore").write_text("/dist/\n")
    release("0.1.0")
    git("tag", "v0.1.0")
    add_change()
    release("0.2.0")
    build("0.2.0")


def add_change() -> None:
    path = Path("CHANGELOG.md")
    path.write_text(path.read_text().replace("## [Unreleased]\n", "## [Unreleased]\n\n### Fixed\n\n- More.\n"))


def release(version: str) -> None:
    process = run("version.py", version)
    assert process.returncode == 0, process.stderr
    commit()


@pytest.mark.usefixtures("repository")
def test_release_check_passes_before_and_after_the_tag() -> None:
    assert run("check.py").stdout.startswith("release-check: torchcommodity 0.2.0 can be released from commit ")
    git("tag", "v0.2.0")
    assert run("check.py").returncode == 0


@pytest.mark.usefixtures("repository")
def test_version_moves_the_unreleased_changes_and_links_them() -> None:
    text = Path("CHANGELOG.md").read_text()
    headings = [line.split(" - ")[0] for line in text.splitlines() if line.startswith("## ")]
    assert headings == ["## [Unreleased]", "## [0.2.0]", "## [0.1.0]"]
    assert text.endswith(
        "- All.\n\n"
        "[Unreleased]: https://github.com/torchcommodity/torchcommodity/compare/v0.2.0...main\n"
        "[0.2.0]: https://github.com/torchcommodity/torchcommodity/releases/tag/v0.2.0\n"
        "[0.1.0]: https://github.com/torchcommodity/torchcommodity/releases/tag/v0.1.0\n"
    )
    assert Path("torchcommodity/__init__.py").read_text() == '"""Words."""\n\n__version__ = "0.2.0"\n'


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["1"], "version: expected a version such as 0.2.0; got '1'"),
        (["v0.3.0"], "version: expected a version such as 0.2.0; got 'v0.3.0'"),
        ([""], "version: expected a version such as 0.2.0; got ''"),
        (["0.3.0"], "version: CHANGELOG.md: expected changes under [Unreleased] and no section [0.3.0] yet"),
    ],
)
def test_version_refuses(arguments: list[str], message: str) -> None:
    before = Path("CHANGELOG.md").read_text()
    assert run("version.py", *arguments).stderr.strip() == message
    assert Path("CHANGELOG.md").read_text() == before


def edit(path: str, old: str, new: str) -> None:
    text = Path(path).read_text()
    assert old in text
    Path(path).write_text(text.replace(old, new))


def rename(old: str, new: str) -> None:
    Path(f"dist/torchcommodity-0.2.0-{old}").rename(f"dist/torchcommodity-0.2.0-{new}")


def commit_again() -> None:
    git("commit", "--quiet", "--allow-empty", "--message", "More work")


def edit_metadata(old: str, new: str) -> None:
    with zipfile.ZipFile("dist/torchcommodity-0.2.0-py3-none-macosx_11_0_arm64.whl", "w") as wheel:
        wheel.writestr(
            "torchcommodity-0.2.0.dist-info/METADATA", METADATA.format("torchcommodity", "0.2.0").replace(old, new)
        )


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda: Path("note").touch(), "working tree: expected everything committed; got 1 changes, such as ?? note"),
        (lambda: git("tag", "v0.3.0"), "tag: expected v0.2.0, the version in torchcommodity/__init__.py; got v0.3.0"),
        (
            lambda: git("tag", "v0.2.0", "HEAD~1"),
            "torchcommodity/__init__.py: expected a version above 0.2.0, the last tag; got 0.2.0; run make version",
        ),
        (
            lambda: edit("torchcommodity/__init__.py", "0.2.0", "0.2.1"),
            "CHANGELOG.md: expected a section ## [0.2.1] - DATE; got none; run make version VERSION=0.2.1",
        ),
        (lambda: edit("CHANGELOG.md", "[0.2.0]: ", "0.2.0: "), "expected a link [0.2.0]: ADDRESS in the last lines"),
        (add_change, "CHANGELOG.md: expected nothing under [Unreleased]; got '### Fixed', ..."),
        (commit_again, "dist/commit: expected "),
        (lambda: Path("dist/commit").unlink(), "this commit; got no such file; run make wheel"),
        (
            lambda: rename("py3-none-macosx_11_0_arm64.whl", "py3-none-any.whl"),
            "one wheel for macOS on arm64; got none",
        ),
        (lambda: build("0.1.0"), "dist/torchcommodity-0.1.0.tar.gz: expected version 0.2.0; got 0.1.0"),
        (lambda: edit_metadata("/markdown", "/x"), "twine check: expected metadata that PyPI takes; got"),
        (
            lambda: edit_metadata("# Words", "# Words\n\n[web](https://a.example), [page](docs/page.md)"),
            "expected a description with absolute links, as PyPI has no other files; got docs/page.md",
        ),
    ],
)
def test_release_check_refuses(change: Callable[[], None], message: str) -> None:
    change()
    process = run("check.py")
    assert process.returncode == 1
    assert message in process.stderr
