"""A server that the tests of a file share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from running_server import RunningServer


@pytest.fixture(scope="module")
def server(wti_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    running = RunningServer(wti_file, tmp_path_factory.mktemp("server"), "--live", "2", "--spare")
    try:
        running.wait_until_healthy()
        yield running
    finally:
        running.stop()


@pytest.fixture
def own_server(wti_file: Path, tmp_path: Path) -> Iterator[RunningServer]:
    """A server that the test may end."""
    running = RunningServer(wti_file, tmp_path)
    try:
        running.wait_until_healthy()
        yield running
    finally:
        running.stop()
