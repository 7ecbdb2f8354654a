"""`torchcommodity serve`: what it rejects at start, and the chain of the README from a fit to a page."""

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from torchcommodity.cli._serve import TOKEN, DashboardPrices, _tokens, make_dashboard
from torchcommodity.data import embedded

Run = Callable[..., Result]
Error = Callable[[Result], str]


def test_serve_rejects_a_model_that_is_not_exported(run: Run, error: Error, fitted: Path) -> None:
    result = run("serve", fitted)
    assert result.exit_code == 2
    assert f"torchcommodity export {fitted}" in error(result)


@pytest.mark.slow
@pytest.mark.process
def test_serve_rejects_prices_without_the_symbols_at_start(
    run: Run, error: Error, artifact: Path, tmp_path: Path
) -> None:
    embedded(["BRENT"]).to_pandas().to_csv(tmp_path / "other.csv")
    embedded(["WTI"]).between("2018-10-01", "2018-12-31").to_pandas().to_csv(tmp_path / "short.csv")
    result = run("serve", artifact, "--data", tmp_path / "other.csv")
    assert result.exit_code == 2
    assert "other.csv cannot be forecast with this model" in error(result)
    assert "got BRENT without WTI" in error(result)
    # the function that raises the error above in a process of the server, without starting one again
    with pytest.raises(ValueError, match=r"short\.csv cannot be forecast with this model.* positive prices"):
        make_dashboard(artifact, DashboardPrices(str(tmp_path / "short.csv")))


@pytest.mark.slow
@pytest.mark.process
def test_fit_export_serve_on_the_default_data_show_a_page(tmp_path: Path) -> None:
    def torchcommodity(*arguments: str) -> list[str]:
        return [sys.executable, "-m", "torchcommodity", *arguments]

    def get(path: str) -> tuple[int, bytes]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as problem:
            with problem:
                return problem.code, problem.read()
        except OSError:
            return 0, b""

    def wait(path: str) -> bytes:
        deadline = time.monotonic() + 120
        while (answer := get(path))[0] != 200:
            assert server.poll() is None
            assert time.monotonic() < deadline, answer
            time.sleep(0.2)
        return answer[1]

    subprocess.run(torchcommodity("fit", "--out", "model.safetensors"), cwd=tmp_path, check=True)
    subprocess.run(torchcommodity("export", "model.safetensors"), cwd=tmp_path, check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = torchcommodity("serve", "model.pt2", "--data", "embedded", "--port", str(port))
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as server:
        try:
            wait("/health")
            while (document := json.loads(wait("/dashboard")))["state"] == "outlook":
                time.sleep(0.2)
            metrics = wait("/metrics").decode()
        finally:
            server.send_signal(signal.SIGTERM)
    assert server.returncode == 0
    assert document["state"] == "ready"
    assert 'torchcommodity_dashboard_price_timestamp_seconds{symbol="BRENT"}' in metrics
    assert [symbol["symbol"] for symbol in document["symbols"]] == ["WTI", "BRENT", "HENRY_HUB"]


def test_token_of_file_or_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _tokens(None) is None
    monkeypatch.setenv(TOKEN, " secret\n")
    tokens = _tokens(None)
    assert tokens is not None
    assert (tokens.accept("secret"), tokens.accept("other")) == (True, False)
    (tmp_path / "token").write_text("two words")
    with pytest.raises(ValueError, match=r"expected printable ASCII .*token; got a line of 9 characters"):
        _tokens(tmp_path / "token")
