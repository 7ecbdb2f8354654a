"""Front processes: light, several behind one port, replaced when they die, ended with the server."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from running_server import RunningServer

from torchcommodity.serve.http import serve


def wait_for(condition: Callable[[], object], seconds: float = 120) -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def metric(server: RunningServer, name: str) -> float:
    """Sum of a metric over its labels."""
    return sum(map(float, re.findall(rf"^{name}(?:{{.*}})? (\S+)", server.request("GET", "/metrics")[2], re.MULTILINE)))


@pytest.fixture(scope="module")
def server(wti_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    running = RunningServer(wti_file, tmp_path_factory.mktemp("fronts"), "--fronts", "2")
    try:
        running.wait_until_healthy()
        wait_for(lambda: metric(running, "torchcommodity_workers_ready") == 2)
        yield running
    finally:
        running.stop()


def test_serve_refuses_to_keep_series_in_several_fronts(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected one front process to keep series"):
        serve(tmp_path / "model.pt2", fronts=2, max_series=1)


def test_serve_refuses_the_port_of_another_server_also_with_several_fronts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as other, pytest.raises(OSError, match="in use"):
        serve(tmp_path / "model.pt2", fronts=2, port=other.getsockname()[1])


@pytest.mark.slow
@pytest.mark.process
def test_sigterm_while_loading_ends_all_fronts(wti_file: Path, tmp_path: Path) -> None:
    running = RunningServer(wti_file, tmp_path, "--fronts", "2")
    try:
        wait_for(running.child_pids)
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(60) == 0, Path(running.log.name).read_text()
    finally:
        running.stop()


def test_import_of_the_server_needs_no_torch() -> None:
    code = "import sys; import torchcommodity.serve.http; print({'torch', 'pandas', 'scipy'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


@pytest.mark.process
def test_a_front_imports_no_torch() -> None:
    code = "import sys, torchcommodity.serve.http._front; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.process
def test_fronts_load_no_torch_and_share_their_metrics(server: RunningServer) -> None:
    with ThreadPoolExecutor(8) as clients:
        responses = list(clients.map(lambda _: server.predict(300), range(32)))
    assert [status for status, _, _ in responses] == [200] * 32
    assert all(content == responses[0][2] for _, _, content in responses)
    for pid in (server.process.pid, *server.child_pids()):
        assert "libtorch" not in Path(f"/proc/{pid}/maps").read_text()
    assert metric(server, "torchcommodity_instances_total") == 32
    assert metric(server, "torchcommodity_artifact_info") == 1


@pytest.mark.slow
@pytest.mark.process
def test_front_that_dies_is_replaced(server: RunningServer) -> None:
    fronts = server.child_pids()
    os.kill(fronts[0], signal.SIGKILL)
    wait_for(lambda: len(server.child_pids()) == 2 and server.child_pids() != fronts)
    wait_for(lambda: metric(server, "torchcommodity_workers_ready") == 2)
    with ThreadPoolExecutor(8) as clients:
        assert [result[0] for result in clients.map(lambda _: server.predict(300), range(16))] == [200] * 16


@pytest.mark.slow
@pytest.mark.process
def test_sigterm_ends_all_fronts(wti_file: Path, tmp_path: Path) -> None:
    server = RunningServer(wti_file, tmp_path, "--fronts", "2")
    try:
        server.wait_until_healthy()
        fronts = server.child_pids()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 0
    finally:
        server.stop()
    assert not any(Path(f"/proc/{pid}").exists() for pid in fronts)
