"""A running server: errors, token, malformed input, worker crashes and shutdown; its numbers: test_predictions.py."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from running_server import MAX_BYTES, TOKEN, RunningServer

pytestmark = [pytest.mark.slow, pytest.mark.process]


def test_concurrent_requests_are_batched(server: RunningServer) -> None:
    with ThreadPoolExecutor(8) as clients:
        results = list(clients.map(lambda _: server.predict(600)[2]["predictions"], range(24)))
    assert all(predictions == results[0] for predictions in results)
    metrics = server.request("GET", "/metrics")[2]
    calls, instances = (float(re.findall(rf"batch_instances_{name} (\S+)", metrics)[0]) for name in ("count", "sum"))
    assert instances > calls
    assert 'requests_total{route="/v1/predict",status="200"}' in metrics


def test_metrics_have_the_names_that_promtool_expects(server: RunningServer) -> None:
    families = list(text_string_to_metric_families(server.request("GET", "/metrics")[2]))
    names = {family.name for family in families}
    assert {"torchcommodity_instances", "process_resident_memory_bytes", "torchcommodity_build_info"} <= names
    for family in families:
        assert family.documentation, family.name
        assert re.fullmatch(r"[a-z][a-z0-9_]*[a-z0-9]", family.name), family.name
        assert not re.search(r"_(ms|seconds_seconds|milliseconds|kb|gauge|counter|histogram)(_|$)", family.name)
        suffixes = {"counter": ("_total", "_created"), "histogram": ("_bucket", "_count", "_sum", "_created")}
        for sample in family.samples:
            suffix = sample.name.removeprefix(family.name)
            assert suffix in suffixes.get(family.type, ("",)), sample.name
            assert suffix or not sample.name.endswith(("_total", "_count", "_sum", "_bucket")), sample.name


def test_metrics_count_instances_failures_and_wrong_tokens(server: RunningServer) -> None:
    def counters() -> dict[str, float]:
        families = text_string_to_metric_families(server.request("GET", "/metrics")[2])
        samples = [sample for family in families if family.type == "counter" for sample in family.samples]
        return {sample.labels.get("cause", sample.name): sample.value for sample in samples}

    before = counters()
    server.predict(300, 400)
    server.predict(300, horizons=[7])
    server.request("POST", "/v1/predict", "{")
    server.request("GET", "/metrics", Authorization="Bearer wrong")
    increases = {name: value - before[name] for name, value in counters().items()}
    assert increases["torchcommodity_instances_total"] == 2
    assert (increases["invalid"], increases["malformed"], increases["worker_died"]) == (1, 1, 0)
    assert increases["torchcommodity_wrong_tokens_total"] == 1


def test_request_id_is_in_response_and_log(server: RunningServer) -> None:
    assert server.request("GET", "/live", **{"X-Request-ID": "desk-7"})[1]["x-request-id"] == "desk-7"
    generated = server.request("GET", "/live", **{"X-Request-ID": 'no"; spaces'})[1]["x-request-id"]
    assert re.fullmatch("[0-9a-f]{32}", generated)
    server.wait_for_log(f'"request_id": "{generated}"')
    assert '"request_id": "desk-7"' in Path(server.log.name).read_text()


@pytest.mark.browser
def test_api_page_sends_requests_with_the_token_and_loads_nothing_from_other_hosts(server: RunningServer) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if (chromium := shutil.which("chromium")) is None:
        pytest.skip("Chromium is not installed")
    address, messages, hosts = f"http://127.0.0.1:{server.port}", [], set()
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(color_scheme="dark")
        page.on("console", lambda message: messages.append(message.text))
        page.on("request", lambda request: hosts.add(request.url.partition("/docs")[0].partition("/openapi")[0]))
        page.goto(f"{address}/docs")
        page.fill("#secret", TOKEN)
        page.click("button[type=submit]")
        for button in (".opblock-summary-post", ".try-out__btn", ".execute"):
            page.click(button)
        playwright.expect(page.locator(".live-responses-table .response-col_status").nth(1)).to_have_text(
            "200", timeout=30_000
        )
        assert page.evaluate("document.documentElement.className") == "dark-mode"
        browser.close()
    assert {host for host in hosts if not host.startswith(("data:", address))} == set()
    assert not [message for message in messages if "Content Security Policy" in message]


def test_token_is_required_except_for_health_and_page(server: RunningServer) -> None:
    for number, path in enumerate(("/metrics", "/openapi.json", "/v1/predict", "/dashboard", "/nothing")):
        client = {"X-Forwarded-For": f"203.0.113.{number}"}  # wrong tokens are limited by client address
        for header in ("", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x"):
            status, headers, content = server.request("GET", path, Authorization=header, **client)
            assert (status, content["error"]["code"]) == (401, 401)
            assert headers["www-authenticate"].startswith("Bearer")
    for path in ("/alive", "/live", "/ready", "/docs", "/docs/swagger-ui-bundle.js", "/", "/page/page.js"):
        assert server.request("GET", path, Authorization="")[0] == 200


def test_get_routes_respond_to_head_and_if_none_match(server: RunningServer) -> None:
    for path in ("/alive", "/openapi.json", "/", "/page/plotly.min.js", "/docs", "/dashboard", "/metrics"):
        status, headers, content = server.request("HEAD", path, **{"Content-Type": "", "Accept-Encoding": "gzip"})
        assert (status, content) == (200, "")
        if path != "/metrics":  # which count this request too
            assert server.request("GET", path, **{"If-None-Match": headers["etag"]})[::2] == (304, "")
    assert server.request("HEAD", "/v1/predict")[1]["allow"] == "POST"


def test_wrong_tokens_are_limited_by_address(server: RunningServer) -> None:
    client = {"X-Forwarded-For": "198.51.100.1"}
    responses = [server.request("GET", "/metrics", Authorization="Bearer wrong", **client) for _ in range(11)]
    assert [response[0] for response in responses] == [401] * 10 + [429]
    assert 0 < int(responses[-1][1]["retry-after"]) <= 60
    assert server.request("GET", "/metrics", **client)[0] == 429
    assert server.request("GET", "/alive", **client)[0] == 200
    assert server.request("GET", "/metrics")[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status"),
    [
        ("GET", "/nothing", None, {}, 404),
        ("GET", "/docs/redoc.standalone.js", None, {}, 404),
        ("GET", "/v1/predict", None, {}, 405),
        ("POST", "/v1/predict", None, {}, 400),
        ("POST", "/v1/predict", "{", {}, 400),
        ("POST", "/v1/predict", "{}", {}, 422),
        ("POST", "/v1/predict", "{}", {"Content-Type": "text/plain"}, 415),
        ("POST", "/v1/predict", "{}", {"Content-Encoding": "gzip"}, 400),
        ("POST", "/v1/predict", "{}", {"Content-Encoding": "deflate"}, 415),
        ("POST", "/v1/predict", "x" * (MAX_BYTES + 1), {}, 413),
        ("POST", "/v1/predict", None, {"Content-Length": "9" * 18}, 413),
    ],
)
def test_errors_have_one_form(
    server: RunningServer, method: str, path: str, body: str | None, headers: dict[str, str], status: int
) -> None:
    received, _, content = server.request(method, path, body, **headers)
    assert received == status
    assert set(content["error"]) == {"code", "status", "message", "field"}
    assert content["error"]["code"] == status
    assert "Traceback" not in json.dumps(content)


def send_bytes(server: RunningServer, *parts: bytes) -> bytes:
    """The response to raw bytes on a socket."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        try:
            for part in parts:
                connection.sendall(part)
        except OSError:
            pass  # the server has closed the connection
        response = b""
        while chunk := _receive(connection):
            response += chunk
        return response


def _receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except ConnectionResetError:
        return b""


HEAD = f"POST /v1/predict HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"


def test_malformed_http_is_rejected(server: RunningServer) -> None:
    chunk = b"10000\r\n" + b"0" * 65536 + b"\r\n"
    chunked = HEAD.encode() + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert send_bytes(server, chunked, *[chunk] * 8, b"0\r\n\r\n").startswith(b"HTTP/1.1 413")
    for malformed in (b"\x16\x03\x01\x00\xff", b"GET / HTTP/9\r\n\r\n", chunked + b"zz\r\n\r\n"):
        response = send_bytes(server, malformed + b"\r\n" * 4)
        assert response.startswith(b"HTTP/1.1 400"), malformed
        assert json.loads(response.partition(b"\r\n\r\n")[2])["error"]["code"] == 400
    oversized_head = [b"X: " + b"y" * 60_000 + b"\r\n"] * 40
    assert b" 400 " in send_bytes(server, b"GET /alive HTTP/1.1\r\n", *oversized_head)
    assert server.healthy()


HOLD_SOCKETS = """
import resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
port, count, data = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].encode()
sockets = []
for _ in range(count):
    sockets.append(socket.create_connection(("127.0.0.1", port)))
    sockets[-1].sendall(data)
print("ready", flush=True)
while True:
    for connection in sockets:
        try:
            connection.send(b" ")
        except OSError:
            pass
    time.sleep(0.2)
"""


@pytest.mark.parametrize(
    ("count", "data"),
    [(200, HEAD + "Content-Length: 90000\r\n\r\n"), (1100, "GET /alive HTTP/1.1\r\nX: ")],
    ids=["slow-bodies", "half-heads"],
)
def test_slow_clients_keep_nobody_out(server: RunningServer, count: int, data: str) -> None:
    command = [sys.executable, "-c", HOLD_SOCKETS, str(server.port), str(count), data]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as attack:
        try:
            assert attack.stdout is not None
            assert attack.stdout.readline() == b"ready\n"
            for _ in range(5):
                assert server.request("GET", "/alive", Authorization="")[0] == 200
                assert server.predict(300)[0] == 200
        finally:
            attack.kill()


def test_pipelined_requests_are_answered_up_to_their_limit(server: RunningServer) -> None:
    get = b"GET /alive HTTP/1.1\r\nHost: x\r\n\r\n"
    last = get.replace(b"Host", b"Connection: close\r\nHost")
    assert send_bytes(server, get * 9 + last).count(b"HTTP/1.1 200") == 10
    for count in (40, 9999):
        received = send_bytes(server, get * count + last)
        assert received.count(b"HTTP/1.1 200") == 17
        assert received.count(b"HTTP/1.1 400") == 1
        assert b"expected at most 16 requests before the response" in received[received.index(b"HTTP/1.1 400") :]


def test_chunked_trailers_are_ignored(server: RunningServer) -> None:
    head = b"POST /v1/predict HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n"
    trailer = f"0\r\nAuthorization: Bearer {TOKEN}\r\nX-Request-ID: trailer\r\n\r\n".encode()
    received = send_bytes(server, head + b"\r\n2\r\n{}\r\n" + trailer)
    assert received.startswith(b"HTTP/1.1 401")
    assert b"trailer" not in received


def test_openapi_documents_request_and_all_responses(server: RunningServer) -> None:
    document = server.request("GET", "/openapi.json")[2]
    predict = document["paths"]["/v1/predict"]["post"]
    assert set(predict["responses"]) == {"200", *map(str, [400, 401, 408, 413, 415, 422, 429, 500, 503, 504])}
    content = predict["requestBody"]["content"]["application/json"]
    assert content["schema"] == {"$ref": "#/components/schemas/PredictRequest"}
    assert server.request("POST", "/v1/predict", json.dumps(content["example"]))[0] == 200
    schemas = document["components"]["schemas"]
    assert schemas["Instance"]["additionalProperties"] is False
    assert {"PredictRequest", "PredictResponse", "ErrorResponse"} <= set(schemas)


def test_spare_answers_the_request_of_a_worker_that_dies_and_without_one_it_gets_503(server: RunningServer) -> None:
    server.wait_for_spare()
    assert server.kill_worker_during_a_request()[0] == 200
    spare = server.child_pids()[1]
    os.kill(spare, signal.SIGSTOP)  # so that it is still loading when its turn comes
    status, headers, content = server.kill_worker_during_a_request()
    os.kill(spare, signal.SIGCONT)
    assert (status, headers["retry-after"]) == (503, "1")
    assert "no worker is running" in content["error"]["message"]
    server.wait_until_healthy()
    assert server.predict(300)[0] == 200


def test_sigterm_responds_to_accepted_requests(own_server: RunningServer) -> None:
    worker = own_server.worker_pid()
    os.kill(worker, signal.SIGSTOP)  # so that no request is done before the server has received all of them
    with ThreadPoolExecutor(8) as clients:
        responses = [clients.submit(own_server.predict, 1500, 1400, 1300) for _ in range(8)]
        own_server.wait_for_requests(8)
        own_server.process.send_signal(signal.SIGTERM)
        os.kill(worker, signal.SIGCONT)
        assert [response.result(20)[0] for response in responses] == [200] * 8
    assert own_server.process.wait(20) == 0
    assert not Path(f"/proc/{worker}").exists()
    log = Path(own_server.log.name).read_text()
    assert all({"time", "level", "logger", "message"} <= set(json.loads(line)) for line in log.splitlines())
    assert '"route": "/v1/predict", "status": 200' in log
    assert TOKEN not in log
    assert "prices" not in log
