"""Costs of operators, in words, with what to do about each."""

from typing import NamedTuple

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
