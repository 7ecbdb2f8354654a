"""The result of `compile`: speedup, differences, graph breaks and recompilations, printed as text or as JSON."""

import json
from dataclasses import dataclass
from typing import NamedTuple

from torch import nn

from torchcommodity.optimize._speedup import Speedup
from torchcommodity.optimize._table import format_table

MOST = 5  # differences and recompilations that are printed


class OutputDifference(NamedTuple):
    """Difference of one output, or gradient, between the compiled and the eager model, over all batches."""

    name: str
    absolute: float  # largest; infinite if shapes, dtypes or NaNs differ
    relative: float  # to the largest absolute value of the output


class GraphBreak(NamedTuple):
    """Where the graph ends and Python goes on."""

    reason: str
    location: str  # file:line
    fix: str


class Recompilation(NamedTuple):
    """A function that was compiled again."""

    batch: str  # that caused it
    function: str  # with file and line
    reason: str


@dataclass(frozen=True)
class CompileResult:
    """A compiled model and its measurements; prints as text."""

    model: nn.Module
    mode: str
    training: bool  # whether forward and backward pass were measured
    batches: tuple[str, ...]  # dtypes and shapes of the distinct batches
    compile_seconds: float  # duration of the first call of each batch
    speedup: Speedup  # of a round over the distinct batches
    differences: tuple[OutputDifference, ...]  # largest first
    graph_breaks: tuple[GraphBreak, ...]
    recompilations: tuple[Recompilation, ...]
    notes: tuple[str, ...] = ()

    @property
    def max_difference(self) -> float:
        """Largest absolute difference of an output."""
        return max((row.absolute for row in self.differences), default=0.0)

    @property
    def summary(self) -> str:
        """Speedup, compile time, difference, breaks and recompilations in a line."""
        # of the same output: the relative difference of a gradient that is zero but for rounding says nothing
        relative = self.differences[0].relative if self.differences else 0.0
        return (
            f"{self.speedup}; compiling took {self.compile_seconds:.1f} s; outputs differ by {self.max_difference:.1e} "
            f"({relative:.1e} relative); {_count(self.graph_breaks, 'graph break')}, "
            f"{_count(self.recompilations, 'recompilation')}"
        )

    def __str__(self) -> str:
        rows = [(x.name, f"{x.absolute:.1e}", f"{x.relative:.1e}", "") for x in self.differences[:MOST]]
        lines = [self.summary, "", format_table(("output", "difference", "relative", ""), rows)]
        lines += [f"graph break at {x.location}: {x.reason}. {x.fix}" for x in self.graph_breaks]
        lines += [f"recompilation of {x.function} by {x.batch}: {x.reason}" for x in self.recompilations[:MOST]]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def json(self) -> str:
        """JSON object with all measurements."""
        fields = {name: value for name, value in vars(self).items() if name != "model"}
        for name in ("differences", "graph_breaks", "recompilations"):
            fields[name] = [row._asdict() for row in fields[name]]
        return json.dumps({**fields, "speedup": self.speedup._asdict(), "summary": self.summary}, indent=2)


def _count(rows: tuple[object, ...], noun: str) -> str:
    return f"{len(rows)} {noun}{'' if len(rows) == 1 else 's'}"
