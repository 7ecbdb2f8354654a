"""What a trace records: calls of torch functions, and those that matter for gradients."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from torchcommodity.opkit._diagnose.locations import Place


@dataclass
class Event:
    """A call of interest. `sources` are the bits of the parameters in its input; `bit` is its own if it is a break.

    `hidden_write`: it changes values of the graph, and the graph does not know. `node`: what the change is there.
    """

    kind: str
    place: Place
    sources: int
    bit: int = 0
    shape: tuple[int, ...] = ()
    hidden_write: bool = False
    node: str = ""

    @property
    def location(self) -> str:
        return self.place.location


@dataclass
class Call:
    """A torch function, its Tensors, and the Tensors that it made or changed."""

    name: str
    function: Any
    tensors: list[Tensor]
    outputs: list[Tensor]
    place: Place
    bits: int
    records_graph: bool
