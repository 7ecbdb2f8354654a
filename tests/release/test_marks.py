"""`.ci/marks`: which jobs of slow tests a pull request starts."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "marks"
MARKS = ["compile", "export", "process", "browser", "cluster"]
OTHERS = "not (compile or export or process or browser or cluster)"


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("pyproject.toml", "", MARKS),
        ("opkit/tests/test_kernels.py", "@pytest.mark.compile", ["compile"]),
        ("tests/docs/test_site.py", "pytestmark = [pytest.mark.slow, pytest.mark.process]", ["process"]),
        ("tests/portfolio/test_train.py", "@pytest.mark.slow", []),
        ("torchcommodity/models/_har.py", "", ["export", "process"]),
        ("torchcommodity/cli/_predict.py", "", ["export", "process"]),
        ("docs/results/speed.csv", "", ["process", "browser"]),
        ("CHANGELOG.md", "", []),
    ],
)
def test_changed_file_starts_the_jobs_of_its_marks(path: str, text: str, expected: list[str], tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=torchcommodity", "-c", "user.email=nobody@example.com"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / ".ci").mkdir()
    shutil.copy(SCRIPT, tmp_path / ".ci")
    git("init")
    git("add", ".")
    git("commit", "--message", "before")
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text(text)
    git("add", ".")
    git("commit", "--message", "after")
    command = [tmp_path / ".ci" / "marks", "HEAD~1"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout == "marks=[{}]\n".format(", ".join(f'"{mark}"' for mark in [OTHERS, *expected]))
