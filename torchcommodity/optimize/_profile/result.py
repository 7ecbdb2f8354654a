"""The result of `profile`: costs of stages and operators, printed as tables or as JSON."""

import json
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from torchcommodity.opkit.arguments import raise_invalid
from torchcommodity.optimize._profile.costs import IDLE, PYTHON, OperatorCost, describe
from torchcommodity.optimize._table import format_table

Sort = Literal["time", "memory"]

SHAPES = 60  # characters of the shapes in a table


@dataclass(frozen=True)
class Profile:
    """Time and memory of one step of a model; prints as tables."""

    device: str
    threads: int  # of the CPU
    steps: int  # measured; the other numbers are means per step
    training: bool  # whether a step has a backward pass
    microseconds: float  # one step, including profiler overhead
    stages: dict[str, float]  # share of the time per stage, sums to 1
    operators: tuple[OperatorCost, ...]  # most expensive first; with overhead and waiting they sum to the total
    peak_bytes: int  # peak memory above that before the first measured step
    notes: tuple[str, ...] = ()

    @property
    def overhead(self) -> float:
        """Share of the time that is spent outside of operators: in Python, or on a GPU outside of kernels."""
        return sum(cost.share for cost in self.operators if cost.name in (PYTHON, IDLE))

    @property
    def largest(self) -> tuple[str, ...]:
        """The three largest costs in words, with what to do; each operator is summed over its shapes."""
        return tuple(map(describe, sorted(sum_shapes(self.operators), key=lambda cost: -cost.microseconds)[:3]))

    def ranked(self, sort: Sort = "time") -> list[OperatorCost]:
        """The operators by time, or by memory."""
        if sort not in get_args(Sort):
            raise_invalid("Profile.table", "sort must be 'time' or 'memory'", sort=sort)
        column = "bytes" if sort == "memory" else "microseconds"
        return sorted(self.operators, key=lambda cost: -getattr(cost, column))

    def table(self, sort: Sort = "time", top: int = 15) -> str:
        """The first `top` operators by time or by memory, as text."""
        heads = ("operator", "calls", "us", "share", "bytes", "shapes and place")
        rows = [
            (x.name, f"{x.calls:g}", f"{x.microseconds:,.0f}", f"{x.share:.1%}", f"{x.bytes:,}", _place(x))
            for x in self.ranked(sort)[:top]
        ]
        return format_table(heads, rows)

    def __str__(self) -> str:
        stages = format_table(("stage", "share", ""), [(name, f"{x:.1%}", "") for name, x in self.stages.items()])
        costs = [f"{rank}. {cost}" for rank, cost in enumerate(self.largest, 1)]
        notes = [f"note: {note}" for note in self.notes]
        tables = [stages, "by time\n" + self.table("time"), "by memory\n" + self.table("memory", 5)]
        return "\n\n".join([self.summary, *tables, "\n".join(costs + notes)])

    @property
    def summary(self) -> str:
        """What was measured, the time and the memory, in a line."""
        kind = "training step" if self.training else "inference step"
        steps = f"{self.steps} {kind}{'s' if self.steps > 1 else ''}"
        threads = f"{self.threads} CPU thread{'s' if self.threads > 1 else ''}"
        time, peak = f"{self.microseconds / 1e3:.2f} ms", _memory(self.peak_bytes)
        overhead = f"{self.overhead:.0%} {IDLE if self.device.startswith('cuda') else PYTHON}"
        return f"{steps} on {self.device}, {threads}: {time} each under the profiler, peak memory {peak}, {overhead}"

    def json(self) -> str:
        """JSON object with all fields and the largest costs."""
        operators = [cost._asdict() for cost in self.operators]
        return json.dumps({**asdict(self), "operators": operators, "largest": self.largest}, indent=2)


def sum_shapes(operators: tuple[OperatorCost, ...]) -> list[OperatorCost]:
    """One cost per operator; shapes and location are those of the most expensive."""
    first: dict[str, OperatorCost] = {}
    for cost in operators:
        total = first.get(cost.name)
        first[cost.name] = (
            cost
            if total is None
            else total._replace(
                calls=total.calls + cost.calls,
                microseconds=total.microseconds + cost.microseconds,
                share=total.share + cost.share,
                bytes=total.bytes + cost.bytes,
            )
        )
    return list(first.values())


def _memory(size: int) -> str:
    return f"{size / 2**20:.2f} MiB" if size >= 2**20 else f"{size / 2**10:.1f} KiB"


def _place(cost: OperatorCost) -> str:
    shapes = cost.shapes if len(cost.shapes) <= SHAPES else f"{cost.shapes[:SHAPES]}..."
    return f"{shapes}  {cost.location}".strip()
