"""Limits of a server."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits that bound the memory and the time of a server.

    Args:
        max_bytes: size of a request body.
        max_instances: instances in a request.
        max_rows: rows in an instance.
        max_waiting: prediction requests in progress; further ones receive 503.
        timeout: seconds to receive a request body, to answer it, and to shut down.
        max_batch: instances of equal length in one call of the artifact.
    """

    max_bytes: int = 4_000_000
    max_instances: int = 256
    max_rows: int = 20_000
    max_waiting: int = 128
    timeout: float = 20.0
    max_batch: int = 32

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 < value < math.inf:
                raise ValueError(f"Limits: {name} must be positive and finite; got {value}")
