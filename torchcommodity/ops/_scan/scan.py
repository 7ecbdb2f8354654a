"""A loop over rows as one node of a graph: the form in which recurrences are exported to ONNX."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

Tensors = tuple[Tensor, ...]


def scan(
    step: Callable[..., tuple[Sequence[Tensor], Sequence[Tensor]]],
    initial: Tensors,
    rows: Tensors,
    constants: Tensors = (),
) -> Tensors:
    """Outputs of step(state, row, *constants) -> (next state, outputs) for every row, stacked along the first axis.

    `torch._higher_order_ops.scan` compiles `step` with Dynamo, which keeps the shapes of an earlier scan: the second of
    a graph gets a size as an additional input, and its export fails. The operator below that function traces `step`
    itself, but takes flat tensors, and those that `step` uses beside the state and the row as `constants`.

    Args:
        step: must return new tensors: copies, where it returns an argument, or the same tensor twice.
        initial: the state before the first row.
        rows: (T, ...) each.
        constants: tensors that are the same for each row.
    """
    from torch._higher_order_ops.scan import scan_op  # at import, it would import Dynamo

    states, inputs = len(initial), len(initial) + len(rows)

    def flat_step(*tensors: Tensor) -> list[Tensor]:
        state, outputs = step(tensors[:states], tensors[states:inputs], *tensors[inputs:])
        return [*state, *outputs]

    results: Any = scan_op(flat_step, list(initial), list(rows), constants)
    return tuple(results[states:])
