"""Tokens are read again when their file changes; wrong ones are limited by client address."""

import logging
import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from torchcommodity.serve._request_error import RequestError
from torchcommodity.serve.http import Tokens, _authentication, _tokens
from torchcommodity.serve.http._authentication import Authentication, Failures


def accepted(tokens: Tokens, *candidates: str) -> list[bool]:
    return [tokens.accept(candidate) for candidate in candidates]


def test_token_file_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_tokens, "RELOAD_SECONDS", 0.0)
    file = tmp_path / "tokens"
    file.write_text("old\n")
    tokens = Tokens(file)
    assert accepted(tokens, "old", "new", "") == [True, False, False]
    file.write_text("old\n\nnew\n")
    assert accepted(tokens, "old", "new") == [True, True]
    (tmp_path / "next").write_text("new")
    (tmp_path / "next").replace(file)
    assert accepted(tokens, "old", "new") == [False, True]
    for invalid in ("", "two words", "caf\u00e9"):
        file.write_text(invalid)
        assert accepted(tokens, "new", invalid) == [True, False]
    file.unlink()
    assert accepted(tokens, "new", "new") == [True, True]
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 4  # once per problem
    assert "got none; the tokens read before remain accepted" in errors[0]
    assert "new" not in caplog.text


def test_token_of_a_pipe_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tokens, "RELOAD_SECONDS", 0.0)
    read, write = os.pipe()
    os.write(write, b"secret\n")
    os.close(write)
    tokens = Tokens(Path(f"/dev/fd/{read}"))
    os.close(read)
    assert accepted(tokens, "secret", "other") == [True, False]


def test_address_with_too_many_wrong_tokens_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    now, failures = [0.0], Failures()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    for now[0] in range(_authentication.MAX_FAILURES):
        assert failures.seconds_to_wait("2001:db8::1") == 0
        failures.add("2001:db8::1")
    assert failures.seconds_to_wait("2001:db8::ffff:2") == 60 - now[0]  # the same network
    assert failures.seconds_to_wait("2001:db8:0:1::1") == 0
    now[0] = 60.0
    assert failures.seconds_to_wait("2001:db8::1") == 0


def test_failures_are_counted_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_authentication, "MAX_ADDRESSES", 3)
    failures = Failures()
    for address in "abcde":
        for _ in range(_authentication.MAX_FAILURES):
            failures.add(address)
    assert [failures.seconds_to_wait(address) > 0 for address in "abcde"] == [False, False, True, True, True]


def test_authentication_refuses_every_token_of_a_waiting_address() -> None:
    metrics = SimpleNamespace(wrong_tokens=SimpleNamespace(inc=lambda: None))
    authentication = Authentication(Tokens("secret"), ("/health", "/page/"), metrics)

    def status(token: str | None, path: str = "/predict", client: str = "203.0.113.7") -> int:
        headers = [] if token is None else [(b"authorization", f"Bearer {token}".encode())]
        try:
            authentication.check({"type": "http", "path": path, "headers": headers, "client": (client, 1)})
        except RequestError as error:
            return error.status
        return 200

    assert [status(None) for _ in range(20)] == [401] * 20  # a page that asks for the token
    assert [status("wrong") for _ in range(12)] == [401] * 10 + [429] * 2
    assert (status("secret"), status("secret", client="203.0.113.8")) == (429, 200)
    assert (status(None), status("wrong", "/health"), status("wrong", "/page/page.js")) == (401, 200, 200)
