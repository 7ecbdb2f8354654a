"""Wrong tokens by client address: after too many in a minute, the address has to wait."""

import logging
import time
from ipaddress import IPv6Address, IPv6Network

MAX_FAILURES = 10
WINDOW_SECONDS = 60.0  # from the first failure
MAX_ADDRESSES = 10_000
log = logging.getLogger("torchcommodity.serve")


class Failures:
    """Numbers of wrong tokens by client address, in bounded memory."""

    def __init__(self) -> None:
        self._windows: dict[str, tuple[float, int]] = {}  # start and number by address, in the order of their start

    def add(self, address: str) -> None:
        """Count a wrong token."""
        address, now = _network(address), time.monotonic()
        start, number = self._window(address, now)
        self._windows[address] = start, number + 1
        if len(self._windows) > MAX_ADDRESSES:
            del self._windows[next(iter(self._windows))]
        if number + 1 == MAX_FAILURES:
            log.warning(
                "%d wrong tokens from %s: requests with a token receive 429 for %.0f s; "
                "if it is a proxy, name it in FORWARDED_ALLOW_IPS to count its clients",
                *(MAX_FAILURES, address, start + WINDOW_SECONDS - now),
            )

    def seconds_to_wait(self, address: str) -> float:
        """Seconds until requests of an address are checked again; 0 = they are."""
        if not self._windows:
            return 0.0
        now = time.monotonic()
        start, number = self._window(_network(address), now)
        return start + WINDOW_SECONDS - now if number >= MAX_FAILURES else 0.0

    def _window(self, address: str, now: float) -> tuple[float, int]:
        start, number = self._windows.get(address, (now, 0))
        if now < start + WINDOW_SECONDS:
            return start, number
        self._windows.pop(address)  # so that the next failure begins a window at the end
        return now, 0


def _network(address: str) -> str:
    """IPv4 address, or the /64 network of an IPv6 address: a client can have all addresses of one.

    >>> _network("203.0.113.7"), _network("2001:db8::aaaa:1"), _network("::ffff:203.0.113.7")
    ('203.0.113.7', '2001:db8::/64', '203.0.113.7')
    """
    try:
        parsed = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    return str(parsed.ipv4_mapped or IPv6Network((parsed, 64), strict=False))
