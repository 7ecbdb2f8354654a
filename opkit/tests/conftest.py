"""The command `opkit`, and no access to the user's own cache of native libraries."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import settings

from torch_opkit import _cli

settings.register_profile("torch_opkit", deadline=None, print_blob=True)
settings.load_profile("torch_opkit")


@pytest.fixture(autouse=True)
def _no_user_files(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_OPKIT_CACHE", str(tmp_path_factory.getbasetemp() / "native"))


@dataclass(frozen=True)
class Result:
    """What a command printed, and its exit code."""

    exit_code: object
    stdout: str
    stderr: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """run("check", "mine:square", "--quick"): the command `opkit`, in this process."""

    def invoke(*arguments: str) -> Result:
        monkeypatch.setattr(sys, "path", [*sys.path])  # the command puts the current folder first
        with pytest.raises(SystemExit) as ended:
            _cli.main(arguments)
        return Result(ended.value.code, *capsys.readouterr())

    return invoke
