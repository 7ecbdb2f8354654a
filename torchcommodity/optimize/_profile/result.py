"""The result of `profile`: costs of stages and operators, with what to do about each, as tables or as JSON."""

import json
from dataclasses import asdict, dataclass
from typing import Literal, NamedTuple, get_args

from torch_opkit.arguments import raise_invalid
from torchcommodity.optimize._table import format_table

PYTHON = "Python overhead"
IDLE = "outside of kernels"  # of a GPU
WAITING = "waiting for data"

# parts of an operator's name, and what makes it cheaper; the first match counts
REMEDIES = {
    (PYTHON,): "the profiler's own time is in it; optimize.compile removes it, a larger batch spreads it",
    (IDLE,): "the GPU waits for Python: optimize.compile with mode='reduce-overhead', or a larger batch",
    (WAITING,): "load in other processes, DataLoader(num_workers=..., persistent_workers=True), or decode in advance",
    (
        "_local_scalar_dense",
        "item",
        "nonzero",
        "is_nonzero",
    ): "reads a value into Python, which stalls a GPU: drop .item()",
    ("_to_copy", "copy_", "contiguous", "clone", "aten::to"): "copies: keep one dtype, device and memory layout",
    ("scaled_dot_product", "flash_attention"): "attention grows with the square of the length: shorten the sequence",
    ("conv",): "bfloat16 under autocast, optimize.channels_last for 2-D convolutions, fewer channels",
    ("addmm", "::mm", "bmm", "baddbmm", "matmul", "linear", "einsum"): (
        "bfloat16 under autocast, optimize.quantize, or a smaller layer (optimize.distill)"
    ),
    ("softmax",): "F.scaled_dot_product_attention computes softmax and products of attention in one operator",
    ("_foreach_", "_fused_adam", "_fused_sgd", "addcdiv", "addcmul"): "the optimizer: pass fused=True to it",
    ("lstm", "gru", "rnn"): "recurrent layers are sequential in time: fewer rows, a smaller layer, or nn.TCN",
    ("embedding", "index"): "gathers rows: sort or pack the indices, or sparse=True for the gradient of an embedding",
    ("batch_norm", "layer_norm", "native_group_norm"): "optimize.compile fuses it with its neighbors",
    ("commodity::",): "a native operator: fewer rows, symbols or forecasts per call",
    ("evaluate_function",): "the autograd engine: fewer, larger operators; optimize.compile",
}
DEFAULT = "optimize.compile fuses elementwise operators; skip the operator where a step does not need it"


class OperatorCost(NamedTuple):
    """Cost of one operator with one set of input shapes, per step."""

    name: str
    shapes: str
    calls: float
    microseconds: float  # self time; on a GPU that of its kernels
    share: float  # of the total time
    bytes: int  # allocated minus freed
    location: str = ""  # most expensive caller: file, line and name of the function


def describe(cost: OperatorCost) -> str:
    """A cost in words, with what to do."""
    remedy = next((text for parts, text in REMEDIES.items() if any(part in cost.name for part in parts)), DEFAULT)
    words = [f"{cost.share:.0%} of the time, {cost.microseconds:,.0f} us"]
    if cost.name not in (PYTHON, IDLE, WAITING):
        calls = "1 call" if cost.calls == 1 else f"{cost.calls:g} calls"
        words += [f"{calls}, the most expensive on {cost.shapes}{f' at {cost.location}' if cost.location else ''}"]
    return f"{cost.name}: {'; '.join(words)}. To reduce it: {remedy}."


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
        rows = []
        for x in self.ranked(sort)[:top]:
            shapes = x.shapes if len(x.shapes) <= SHAPES else f"{x.shapes[:SHAPES]}..."
            numbers = f"{x.calls:g}", f"{x.microseconds:,.0f}", f"{x.share:.1%}", f"{x.bytes:,}"
            rows.append((x.name, *numbers, f"{shapes}  {x.location}".strip()))
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
        time, size = f"{self.microseconds / 1e3:.2f} ms", self.peak_bytes
        peak = f"{size / 2**20:.2f} MiB" if size >= 2**20 else f"{size / 2**10:.1f} KiB"
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
