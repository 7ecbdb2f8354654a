"""Connections that wait for their clients: bounded in time, number and unsent bytes."""

import asyncio
from typing import Protocol

HEAD_TIMEOUT = 5.0  # seconds from opening a connection, or from a response, to the end of the next request's head
SEND_TIMEOUT = 30.0  # seconds in which the client reads nothing of a response
MAX_UNSENT_BYTES = 256_000_000  # of responses that clients do not read


class Connection(Protocol):
    """What is asked of a connection."""

    @property
    def unsent_bytes(self) -> int:
        """Bytes of responses that the client has not read."""

    def close(self, reason: str = "") -> None:
        """Close the connection, telling a client that has begun a request the reason."""


class WaitingConnections:
    """Connections that wait for a request head, or for the client to read a response; the longest waiting ones first.

    When too many connections are open, the one that waits longest is closed, not the newest: clients that send nothing
    do not keep out those that send a request. Connections whose request is in progress are not among them.

    Args:
        max_connections: number of open connections, waiting or not.
    """

    def __init__(self, max_connections: int) -> None:
        self.max_connections, self.dropped = max_connections, 0
        self._since: dict[Connection, float] = {}
        self._unsent: dict[Connection, int] = {}

    def add(self, connection: Connection) -> None:
        """A connection begins to wait; if it waits already, anew."""
        self._since.pop(connection, None)
        self._since[connection] = asyncio.get_running_loop().time()

    def discard(self, connection: Connection) -> None:
        """A connection waits no longer."""
        self._since.pop(connection, None)

    def make_room(self, open_connections: int) -> None:
        """Close the longest waiting connection if too many are open."""
        if open_connections > self.max_connections:
            self._drop(next(iter(self._since), None))

    def close_overdue(self) -> None:
        """Close connections that wait for too long, and those with too many unsent bytes; called every second."""
        unsent = {connection: size for connection in self._since if (size := connection.unsent_bytes)}
        for connection, size in unsent.items():
            if size < self._unsent.get(connection, 0):  # its client has read some of a response: it waits anew
                self.add(connection)
        self._unsent, now = unsent, asyncio.get_running_loop().time()
        for connection, since in list(self._since.items()):
            if now - since > (SEND_TIMEOUT if unsent.get(connection) else HEAD_TIMEOUT):
                connection.close("the head of the request was not received in time")
        while unsent and sum(unsent.values()) > MAX_UNSENT_BYTES:
            connection = next(iter(unsent))
            del unsent[connection]
            self._drop(connection)

    def _drop(self, connection: Connection | None) -> None:
        if connection is not None:
            self.discard(connection)
            self.dropped += 1
            connection.close()
