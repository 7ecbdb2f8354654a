"""Request bodies being received: bounded in time, number and size, so that slow clients exhaust neither."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field

from torchcommodity.serve._request_error import CLOSE_CONNECTION, RETRY_AFTER, RequestError
from torchcommodity.serve.http._limits import Limits

MIN_RATE = 4096  # bytes per second, on average after the grace period
GRACE_SECONDS = 5.0
MAX_UPLOADS = 512
MAX_FULL_UPLOADS = 64  # bodies of the maximum size: their sum bounds the memory


@dataclass(eq=False)
class Upload:
    """A request body being received.

    Args:
        timeout: seconds to receive it.
        body: what is kept of it.
        size: bytes received.
    """

    timeout: float
    body: bytearray = field(default_factory=bytearray)
    size: int = 0
    start: float = field(default_factory=lambda: asyncio.get_running_loop().time())

    @property
    def deadline(self) -> float:
        """Time by which more must have been received."""
        return self.start + min(self.timeout, GRACE_SECONDS + self.size / MIN_RATE)


class Uploads:
    """Request bodies being received at the same time.

    Too slow a body is refused with 408. When there are too many, or they take too much memory, the one that began first
    is refused: bodies of well-behaved clients take milliseconds.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._reading: dict[Upload, asyncio.Task[None]] = {}  # in the order of their start

    async def run(self, upload: Upload, reading: Coroutine[None, None, None]) -> None:
        """Run the coroutine that receives an upload.

        Raises:
            RequestError: 408 for a slow body, 503 if the server has too many.
        """
        task = self._reading[upload] = asyncio.ensure_future(reading)
        self.make_room()
        try:
            while not task.done():
                now = asyncio.get_running_loop().time()
                if now >= upload.deadline:
                    rate = f"{MIN_RATE} bytes/s after {GRACE_SECONDS:g} s"
                    expected = f"all of it within {self.limits.timeout:g} s, and {rate}"
                    message = f"body: expected {expected}; got {upload.size} bytes in {now - upload.start:.0f} s"
                    raise RequestError(408, message, None, CLOSE_CONNECTION)
                await asyncio.wait({task}, timeout=upload.deadline - now)
            if task.cancelled():
                message = "the server is receiving too many requests; try again"
                raise RequestError(503, message, None, RETRY_AFTER | CLOSE_CONNECTION)
            task.result()
        finally:
            self._reading.pop(upload, None)
            task.cancel()

    def make_room(self) -> None:
        """Cancel uploads, the oldest first, while they are too many or too large in total."""
        max_bytes = MAX_FULL_UPLOADS * self.limits.max_bytes
        while len(self._reading) > MAX_UPLOADS or sum(len(upload.body) for upload in self._reading) > max_bytes:
            self._reading.pop(next(iter(self._reading))).cancel()
