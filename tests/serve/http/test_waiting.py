"""Connections that wait for their clients are closed in the order of their waiting, and in time."""

import asyncio
from collections.abc import Iterator

import pytest

from torchcommodity.serve.http import _waiting
from torchcommodity.serve.http._waiting import WaitingConnections


class Connection:
    def __init__(self, unsent_bytes: int = 0) -> None:
        self.unsent_bytes, self.closed = unsent_bytes, False

    def close(self, reason: str = "") -> None:
        self.closed = True


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """Time of the event loop, to be changed by the test."""
    now = [100.0]
    loop = asyncio.new_event_loop()
    monkeypatch.setattr(loop, "time", lambda: now[0])
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    yield now
    loop.close()


def test_longest_waiting_connection_makes_room(seconds: list[float]) -> None:
    first, busy, last = connections = [Connection() for _ in range(3)]
    waiting = WaitingConnections(max_connections=2)
    for connection in connections:
        waiting.add(connection)
    waiting.discard(busy)
    waiting.make_room(2)
    assert not any(connection.closed for connection in connections)
    waiting.make_room(3)
    assert [connection.closed for connection in connections] == [True, False, False]
    waiting.add(busy)  # its response is complete
    waiting.make_room(3)
    assert (last.closed, busy.closed, waiting.dropped) == (True, False, 2)
    assert first.closed


def test_connection_without_a_request_is_closed_in_time(seconds: list[float]) -> None:
    connection, waiting = Connection(), WaitingConnections(10)
    waiting.add(connection)
    for seconds[0], closed in ((104.9, False), (105.1, True)):
        waiting.close_overdue()
        assert connection.closed is closed


def test_client_that_reads_a_response_keeps_its_connection(seconds: list[float]) -> None:
    reader, stalled = Connection(10**6), Connection(10**6)
    waiting = WaitingConnections(10)
    for connection in (reader, stalled):
        waiting.add(connection)
    for _ in range(40):
        reader.unsent_bytes -= 1000
        waiting.close_overdue()
        seconds[0] += 1.0
    assert (reader.closed, stalled.closed) == (False, True)


def test_unsent_bytes_are_bounded(seconds: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_waiting, "MAX_UNSENT_BYTES", 250)
    connections, waiting = [Connection(100) for _ in range(4)], WaitingConnections(10)
    for connection in connections:
        waiting.add(connection)
    waiting.close_overdue()
    assert [connection.closed for connection in connections] == [True, True, False, False]
