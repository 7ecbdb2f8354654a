"""A running server, and its client."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from torchcommodity import data

TOKEN = "a-token-of-the-test"
MAX_BYTES = 300_000
PANEL = data.embedded(["WTI"]).between("2012-01-01", "2018-12-31")


class RunningServer:
    """Server process, configured by the environment variables of Vertex AI, and its client."""

    def __init__(self, artifact: Path, folder: Path, *options: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as unused:
            self.port = unused.getsockname()[1]
        (folder / "token").write_text(TOKEN + "\n")
        environment = {
            "AIP_HTTP_PORT": str(self.port),
            "AIP_HEALTH_ROUTE": "/alive",
            "AIP_PREDICT_ROUTE": "/v1/predict",
        }
        command = [sys.executable, "-m", "torchcommodity", "serve", str(artifact), "--max-bytes", str(MAX_BYTES)]
        command += ["--token-file", str(folder / "token"), "--timeout", "15", *options]
        self.log = (folder / "log").open("w+")
        self.process = subprocess.Popen(command, env={**os.environ, **environment}, stderr=self.log)

    def request(
        self, method: str, path: str, body: bytes | str | None = None, **headers: str
    ) -> tuple[int, dict[str, str], Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            all_headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", **headers}
            connection.request(method, path, body, all_headers)
            response = connection.getresponse()
            content = response.read()
            is_json = content and "json" in response.headers.get("content-type", "")  # none after HEAD
            return response.status, dict(response.headers), json.loads(content) if is_json else content.decode()
        finally:
            connection.close()

    def predict(self, *rows: int, **parameters: Any) -> tuple[int, dict[str, str], Any]:
        content = {"instances": [instance(n) for n in rows], "parameters": parameters}
        return self.request("POST", "/v1/predict", json.dumps(content))

    def healthy(self) -> bool:
        try:
            return self.request("GET", "/alive")[0] == 200
        except OSError:
            return False

    def wait_until_healthy(self, seconds: float = 120) -> None:
        deadline = time.monotonic() + seconds
        while not self.healthy():
            assert self.process.poll() is None, Path(self.log.name).read_text()
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def wait_for_requests(self, n: int) -> None:
        """Wait until the server is working on n requests."""
        deadline = time.monotonic() + 30
        while self.requests_in_flight() < n:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def wait_for_log(self, text: str) -> None:
        """Wait for a text in the log, which has a request's line after its response."""
        deadline = time.monotonic() + 30
        while text not in Path(self.log.name).read_text():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def wait_for_spare(self) -> None:
        """Wait until the spare worker has loaded the artifact."""
        deadline = time.monotonic() + 120
        while not self.gauge("spares_ready"):
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def wait_for_calls(self, n: int) -> None:
        """Wait until the artifact has been called n times, or is being called the last time."""
        deadline = time.monotonic() + 30
        while self.gauge("batch_instances_count") < n:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def requests_in_flight(self) -> int:
        return int(self.gauge("requests_in_flight")) - 1  # this one

    def gauge(self, name: str) -> float:
        (value,) = re.findall(rf"^torchcommodity_{name} (\S+)", self.request("GET", "/metrics")[2], re.MULTILINE)
        return float(value)

    def kill_worker_during_a_request(self) -> tuple[int, dict[str, str], Any]:
        """Response to a request that a worker has received when it is killed."""
        worker, calls = self.worker_pid(), int(self.gauge("batch_instances_count"))
        os.kill(worker, signal.SIGSTOP)  # so that it has received the request but does not respond
        with ThreadPoolExecutor(1) as client:
            response = client.submit(self.predict, 300)
            self.wait_for_calls(calls + 1)
            os.kill(worker, signal.SIGKILL)
            return response.result(30)

    def worker_pid(self) -> int:
        """The first process that the server has started: a worker in use, not a spare."""
        return self.child_pids()[0]

    def child_pids(self) -> list[int]:
        """Processes that the server has started."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(pid) for pid in children if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()]

    def stop(self) -> None:
        """Kill the server if it still runs."""
        self.process.kill()
        self.process.wait()
        self.log.close()


def instance(rows: int) -> dict[str, Any]:
    prices = PANEL.values.plain()[-rows:].tolist()
    return {
        "prices": [[price if price == price else None for price in row] for row in prices],
        "dates": list(map(str, PANEL.dates[-rows:])),
    }
