"""How much a server takes on at once; what is beyond is refused in words."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The bounds of one server: memory and time stay within them whatever clients do.

    Args:
        bytes: of a request's body.
        instances: of a request.
        rows: of an instance.
        waiting: requests that are read, wait or are computed; one more is told to come back.
        seconds: from a request's head to its answer; also what a stop waits for.
        batch: instances of equal T in one call of the artifact.
    """

    bytes: int = 4_000_000
    instances: int = 256
    rows: int = 20_000
    waiting: int = 128
    seconds: float = 20.0
    batch: int = 32

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise ValueError(f"Limits: {name} must be positive; got {value}")
