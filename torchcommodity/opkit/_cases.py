"""What an operator is checked on: samples, bad inputs, published numbers and an oracle, all rows of data."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor


class Sample:
    """Arguments of the public function: `Sample(returns, window=5)`.

    Tensors come first and by position, an absent one as None; settings by name. Tensors are float64 (or integers),
    small enough for finite differences, and no other axis is as long as time.
    """

    def __init__(self, *tensors: Tensor | None, **settings: Any) -> None:
        self.tensors, self.settings = tensors, settings

    def __repr__(self) -> str:
        shapes = ["None" if x is None else str(tuple(x.shape)) for x in self.tensors]
        return ", ".join([*shapes, *(f"{name}={value!r}" for name, value in self.settings.items())])


@dataclass(frozen=True)
class Bad:
    """A call that must be refused: the error and a regular expression that its message matches."""

    sample: Sample
    message: str
    error: type[Exception] = ValueError


@dataclass(frozen=True)
class Golden:
    """A published result: `source` says where it stands."""

    sample: Sample
    expected: Tensor | tuple[Tensor, ...]  # one, or the first outputs of several
    source: str
    tolerance: float = 1e-9


@dataclass(frozen=True)
class Cases:
    """Everything that `check` needs to know of one operator.

    `door` is the public function, which the samples call. `oracle` takes the same arguments and gives the result of an
    independent implementation; it imports that package itself, and `check` skips the row, aloud, where it is absent.
    """

    function: Callable[..., Any]
    samples: tuple[Sample, ...]
    bad: tuple[Bad, ...] = ()
    golden: tuple[Golden, ...] = ()
    oracle: Callable[..., Any] | None = None
    oracle_samples: tuple[Sample, ...] = ()  # longer panels, with missing rows; `samples` if empty
    oracle_tolerance: float = 1e-9
