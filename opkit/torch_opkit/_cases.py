"""The data that an operator is checked on: samples, bad inputs, published numbers and an oracle."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor


class Sample:
    """Arguments of the public function: `Sample(returns, window=5)`.

    Tensors come first and by position, an absent one as None; settings by name. Tensors are float64 (or integers) and
    small enough for finite differences. No other axis may have the length of the time axis.
    """

    def __init__(self, *tensors: Tensor | None, **settings: object) -> None:
        self.tensors, self.settings = tensors, settings

    def __repr__(self) -> str:
        shapes = ["None" if x is None else str(tuple(x.shape)) for x in self.tensors]
        return ", ".join([*shapes, *(f"{name}={value!r}" for name, value in self.settings.items())])


@dataclass(frozen=True)
class Bad:
    """A call that must raise `error`, with a message that matches the regular expression `message`."""

    sample: Sample
    message: str
    error: type[Exception] | tuple[type[Exception], ...] = ValueError


@dataclass(frozen=True)
class Golden:
    """A published result and its `source`."""

    sample: Sample
    expected: Tensor | tuple[Tensor, ...]  # one, or the first outputs of several
    source: str
    tolerance: float = 1e-9


@dataclass(frozen=True)
class Cases:
    """The data that `check` runs an operator on.

    `function` is the public function, which the samples call. `oracle` takes the same arguments and returns the result
    of an independent implementation; it imports that package itself, and is reported as skipped if that fails. For an
    operator that writes to arguments it returns their new values, then the outputs.
    """

    function: Callable[..., Any]
    samples: tuple[Sample, ...]
    bad: tuple[Bad, ...] = ()
    golden: tuple[Golden, ...] = ()
    oracle: Callable[..., Any] | None = None
    oracle_samples: tuple[Sample, ...] = ()  # longer panels, with missing rows; default: `samples`
    oracle_tolerance: float = 1e-9
