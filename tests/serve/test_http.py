"""A live server, attacked, loaded and stopped from outside."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from torchcommodity import data, forecast
from torchcommodity.export import Artifact, export
from torchcommodity.training import one_thread

TOKEN = "a-token-of-the-test"
MOST = 300_000  # bytes of a request
PANEL = data.embedded()["WTI"].between("2012-01-01", "2018-12-31")


class Live:
    """A server as Vertex AI starts it, and one way to ask it."""

    def __init__(self, artifact: Path, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        (folder / "token").write_text(TOKEN + "\n")
        contract = {"AIP_HTTP_PORT": str(self.port), "AIP_HEALTH_ROUTE": "/alive", "AIP_PREDICT_ROUTE": "/v1/predict"}
        command = [sys.executable, "-m", "torchcommodity", "serve", str(artifact), "--max-bytes", str(MOST)]
        command += ["--token-file", str(folder / "token"), "--timeout", "15"]
        self.log = (folder / "log").open("w+")
        self.process = subprocess.Popen(command, env={**os.environ, **contract}, stderr=self.log)

    def ask(
        self, method: str, path: str, body: bytes | str | None = None, **headers: str
    ) -> tuple[int, dict[str, str], Any]:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            given = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", **headers}
            line.request(method, path, body, given)
            answer = line.getresponse()
            content = answer.read()
            kind = answer.headers.get("content-type", "")
            return answer.status, dict(answer.headers), json.loads(content) if "json" in kind else content.decode()
        finally:
            line.close()

    def predict(self, *rows: int, **parameters: Any) -> tuple[int, dict[str, str], Any]:
        content = {"instances": [instance(n) for n in rows], "parameters": parameters}
        return self.ask("POST", "/v1/predict", json.dumps(content))

    def healthy(self) -> bool:
        try:
            return self.ask("GET", "/alive")[0] == 200
        except OSError:
            return False

    def wait(self, seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while not self.healthy():
            assert self.process.poll() is None, Path(self.log.name).read_text()
            assert time.monotonic() < end
            time.sleep(0.1)

    def worker(self) -> int:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return next(int(pid) for pid in children if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text())


def instance(rows: int) -> dict[str, Any]:
    prices = PANEL.values.plain()[-rows:].tolist()
    return {
        "prices": [[price if price == price else None for price in row] for row in prices],
        "dates": list(map(str, PANEL.dates[-rows:])),
    }


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(forecast.fit(PANEL), tmp_path_factory.mktemp("serve") / "wti.pt2")


@pytest.fixture(scope="module")
def live(artifact: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    server = Live(artifact, tmp_path_factory.mktemp("live"))
    try:
        server.wait()
        yield server
    finally:
        server.process.kill()
        server.process.wait()
        server.log.close()


def test_the_bits_of_the_artefact_in_any_batch(live: Live, artifact: Path) -> None:
    status, _, answer = live.predict(300, 400, 300, 1000, 400, quantity="log_return")
    assert status == 200
    loaded = Artifact.load(artifact)
    for rows, found in zip((300, 400, 300, 1000, 400), answer["predictions"], strict=True):
        days = torch.from_numpy(PANEL.dates[-rows:].astype(np.int64))
        with one_thread():
            expected = loaded(PANEL.values.plain()[-rows:][None], days[None])[0]
        assert torch.equal(torch.tensor(found["quantiles"], dtype=torch.double), expected)
    assert answer["metadata"]["sha256"] == loaded.metadata.sha256


def test_prices_are_those_of_predict(live: Live) -> None:
    expected = forecast.predict(forecast.fit(PANEL), PANEL.between("2015-01-01", None))
    (found,) = live.predict(len(PANEL.between("2015-01-01", None)))[2]["predictions"]
    assert torch.equal(torch.tensor(found["quantiles"], dtype=torch.double), expected.prices)
    assert (found["origins"], found["last"]) == ([str(expected.origins[0])], expected.last.tolist())


def test_many_at_once_go_together(live: Live) -> None:
    with ThreadPoolExecutor(8) as clients:
        found = list(clients.map(lambda _: live.predict(600)[2]["predictions"], range(24)))
    assert all(predictions == found[0] for predictions in found)
    numbers = live.ask("GET", "/metrics")[2]
    calls, instances = (float(re.findall(rf"batch_instances_{x} (\S+)", numbers)[0]) for x in ("count", "sum"))
    assert instances > calls
    assert 'requests_total{route="/v1/predict",status="200"}' in numbers


def test_the_token_closes_all_but_health_and_the_page(live: Live) -> None:
    for path in ("/metrics", "/openapi.json", "/v1/predict", "/nothing"):
        for given in ("", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x"):
            status, headers, content = live.ask("GET", path, Authorization=given)
            assert (status, content["error"]["code"]) == (401, 401)
            assert headers["www-authenticate"].startswith("Bearer")
    assert live.ask("GET", "/alive", Authorization="")[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status"),
    [
        ("GET", "/nothing", None, {}, 404),
        ("GET", "/docs", None, {}, 404),
        ("GET", "/v1/predict", None, {}, 405),
        ("POST", "/v1/predict", None, {}, 400),
        ("POST", "/v1/predict", "{", {}, 400),
        ("POST", "/v1/predict", "{}", {}, 422),
        ("POST", "/v1/predict", "{}", {"Content-Type": "text/plain"}, 415),
        ("POST", "/v1/predict", "{}", {"Content-Encoding": "gzip"}, 415),
        ("POST", "/v1/predict", "x" * (MOST + 1), {}, 413),
        ("POST", "/v1/predict", None, {"Content-Length": "9" * 18}, 413),
    ],
)
def test_every_error_has_one_form(
    live: Live, method: str, path: str, body: str | None, headers: dict[str, str], status: int
) -> None:
    found, _, content = live.ask(method, path, body, **headers)
    assert found == status
    assert set(content["error"]) == {"code", "status", "message", "field"}
    assert content["error"]["code"] == status
    assert "Traceback" not in json.dumps(content)


def raw(live: Live, *parts: bytes) -> bytes:
    """What comes back on a plain socket."""
    with socket.create_connection(("127.0.0.1", live.port), timeout=20) as line:
        try:
            for part in parts:
                line.sendall(part)
        except OSError:
            pass  # it has heard enough
        found = b""
        while chunk := _received(line):
            found += chunk
        return found


def _received(line: socket.socket) -> bytes:
    try:
        return line.recv(65536)
    except ConnectionResetError:
        return b""


HEAD = f"POST /v1/predict HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"


def test_what_is_no_http_is_told_so(live: Live) -> None:
    chunk = b"10000\r\n" + b"0" * 65536 + b"\r\n"
    chunked = HEAD.encode() + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert raw(live, chunked, *[chunk] * 8, b"0\r\n\r\n").startswith(b"HTTP/1.1 413")
    for bad in (b"\x16\x03\x01\x00\xff", b"GET / HTTP/9\r\n\r\n", chunked + b"zz\r\n\r\n"):
        answer = raw(live, bad + b"\r\n" * 4)
        assert answer.startswith(b"HTTP/1.1 400"), bad
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == 400
    assert b" 400 " in raw(live, b"GET /alive HTTP/1.1\r\n", *[b"X: " + b"y" * 60_000 + b"\r\n"] * 40)
    assert live.healthy()


def test_its_openapi_document_names_every_answer(live: Live) -> None:
    document = live.ask("GET", "/openapi.json")[2]
    predict = document["paths"]["/v1/predict"]["post"]
    assert set(predict["responses"]) == {"200", *map(str, [400, 401, 408, 413, 415, 422, 500, 503, 504])}
    assert predict["requestBody"]["content"]["application/json"]["schema"]["$ref"] == "#/components/schemas/Request"
    assert document["components"]["schemas"]["Instance"]["additionalProperties"] is False


def test_a_dead_worker_is_told_and_replaced(live: Live) -> None:
    worker = live.worker()
    os.kill(worker, signal.SIGSTOP)  # so that it has the request and does not answer
    with ThreadPoolExecutor(1) as client:
        waits = client.submit(live.predict, 300)
        time.sleep(0.5)
        os.kill(worker, signal.SIGKILL)
        status, headers, content = waits.result(10)
    assert (status, headers["retry-after"]) == (503, "1")
    assert "worker died" in content["error"]["message"]
    live.wait()
    assert live.predict(300)[0] == 200
    assert live.worker() != worker


def test_sigterm_answers_what_it_accepted(live: Live) -> None:
    worker = live.worker()
    with ThreadPoolExecutor(8) as clients:
        waits = [clients.submit(live.predict, 1500, 1400, 1300) for _ in range(8)]
        time.sleep(0.3)
        live.process.send_signal(signal.SIGTERM)
        assert [wait.result(20)[0] for wait in waits] == [200] * 8
    assert live.process.wait(20) == 0
    assert not Path(f"/proc/{worker}").exists()
    lines = Path(live.log.name).read_text()
    assert '"route": "/v1/predict", "status": 200' in lines
    assert TOKEN not in lines
    assert "prices" not in lines
