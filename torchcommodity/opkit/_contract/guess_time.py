"""What can be measured of an operator: its time axis, whether rows look ahead, and whether batches are independent."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torchcommodity.opkit._cases import Sample
from torchcommodity.opkit._contract.invocation import run_once
from torchcommodity.opkit._op import is_floating

Run = Callable[[Sequence[Any]], Sequence[Tensor]]


def runner(function: Callable[..., Any], sample: Sample) -> Run:
    """The operator as a function of the tensors alone, without gradients and from the same random state."""

    def run(tensors: Sequence[Any]) -> Sequence[Tensor]:
        outputs: Sequence[Tensor] = run_once(function, Sample(*tensors, **sample.settings))
        return outputs

    return run


def guess_time_axis(run: Run, tensors: Sequence[Any], inputs: int) -> int | None:
    """The axis along which rows remember earlier rows and know no later ones; None if there is not exactly one."""
    first = tensors[0] if tensors else None
    if first is None or not is_floating(first):
        return None
    axes = [axis for axis in (-2, -1, -3, -4) if first.dim() >= -axis and first.shape[axis] > 2]
    candidates = [axis for axis in axes if _is_time(run, tensors[:inputs], tensors[inputs:], axis)]
    return candidates[0] if len(candidates) == 1 else None


def looks_ahead(run: Run, tensors: Sequence[Any], time: tuple[int, int], inputs: int) -> bool:
    """Whether a row of an output changes if a later row of the inputs does."""
    expected, rows = run(tensors), tensors[0].shape[time[0]]
    for last in range(rows - 1):
        changed = run([*_change_rows(tensors[:inputs], time[0], last + 1, rows), *tensors[inputs:]])
        if not _equal(changed, expected, time[1], 0, last + 1):
            return True
    return False


def _is_time(run: Run, tensors: Sequence[Any], state: Sequence[Any], axis: int) -> bool:
    rows, expected = tensors[0].shape[axis], run([*tensors, *state])
    if any(y.dim() < -axis or y.shape[axis] != rows for y in expected):
        return False
    try:
        if looks_ahead(run, [*tensors, *state], (axis, axis), len(tensors)):
            return False
        changed = run([*_change_rows(tensors, axis, 0, 1), *state])
    except Exception:  # it refuses other values: nothing can be measured
        return False
    return not _equal(changed, expected, axis, 1, rows)


def _change_rows(tensors: Sequence[Any], axis: int, start: int, stop: int) -> list[Any]:
    """The tensors with other values in rows from `start` to `stop`, in the range of the values that are there."""
    rows = tensors[0].shape[axis]

    def change(x: Any) -> Any:
        if not is_floating(x) or x.dim() < -axis or x.shape[axis] != rows:
            return x
        x = x.clone()
        part = x.narrow(axis, start, stop - start)
        part.copy_(part * 0.75 + 0.25 * x.mean() + 0.01)
        return x

    return [change(x) for x in tensors]


def _equal(actual: Sequence[Tensor], expected: Sequence[Tensor], axis: int, start: int, stop: int) -> bool:
    pairs = [
        (x.narrow(axis, start, stop - start), y.narrow(axis, start, stop - start)) for x, y in zip(actual, expected)
    ]
    return all(torch.equal(x.nan_to_num(1e300), y.nan_to_num(1e300)) for x, y in pairs)


def batches_are_free(run: Run, tensors: Sequence[Any]) -> bool:
    """Whether one more leading axis of every tensor gives one independent call for each entry, for any width."""
    present = [x for x in tensors if isinstance(x, Tensor)]
    if not present or any(x.dim() == 0 or not x.is_floating_point() for x in present):
        return False
    others = [x.flip(0) * 0.75 + 0.1 if isinstance(x, Tensor) else x for x in tensors]
    try:
        stacked = run([torch.stack([x, y]) if isinstance(x, Tensor) else x for x, y in zip(tensors, others)])
        single = [run(tensors), run(others)]
        run([torch.cat([x, x], -1) if isinstance(x, Tensor) else x for x in tensors])
    except Exception:  # it takes tensors of this shape only
        return False
    return all(
        y.shape == (2, *x.shape) and torch.allclose(y[k], x, equal_nan=True, rtol=1e-9, atol=1e-9)
        for k in range(2)
        for x, y in zip(single[k], stacked, strict=True)
    )
