"""What can be measured of a foreign operator: its time axis, causality, and whether batches are independent."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from torch_opkit._cases import Sample
from torch_opkit._contract.foreign import ForeignOp
from torch_opkit._contract.invocation import run_once
from torch_opkit._op import is_floating

Run = Callable[[Sequence[Any]], Sequence[Tensor]]  # the operator as a function of the tensors alone


def measure(op: ForeignOp) -> ForeignOp:
    """The operator with its time axis, causality and batching, as stated or as the first sample shows them."""
    sample = op.data.samples[0]
    inputs = op.num_inputs(sample)

    def run(tensors: Sequence[Any]) -> tuple[Tensor, ...]:
        return run_once(op.data.function, Sample(*tensors, **sample.settings))

    time, guesses = op.declaration.axes, dict(op.guesses)
    if op.declaration.time == "guess":
        axis = _guess_time_axis(run, sample.tensors, inputs)
        time = None if axis is None else (axis, axis)
        if time:
            guesses["time"] = f"time={axis} (rows remember earlier rows of this axis, and know no later ones)"
    causal = op.declaration.causal
    timed: tuple[int, ...] = ()
    if time:
        timed = _timed_outputs(op, run(sample.tensors), sample, time)
        if causal is None:
            causal = "time" in guesses or not _looks_ahead(
                lambda x: [run(x)[i] for i in timed], sample.tensors, time, inputs
            )
            guesses["causal"] = f"causal={causal} (measured)"
    free = not op.state_names and _batches_are_free(run, sample.tensors)
    return replace(
        op,
        time=time,
        causal=causal if callable(causal) else bool(causal),
        vmap="batch" if free else "loop",
        timed_outputs=timed,
        guesses=guesses,
    )


def _timed_outputs(op: ForeignOp, outputs: Sequence[Tensor], sample: Sample, time: tuple[int, int]) -> tuple[int, ...]:
    """Indices of the outputs with as many rows as the first input.

    Raises:
        ValueError: the first input has no such axis, or no output has as many rows.
    """
    first = sample.tensors[0] if sample.tensors else None
    stated = f"check: time={op.declaration.time!r}"
    if not isinstance(first, Tensor) or first.dim() < -time[0]:
        raise ValueError(
            f"{stated} must be an axis of the first input; got {sample}: pass another axis, or None without a time axis"
        )
    rows = first.shape[time[0]]
    timed = tuple(i for i, y in enumerate(outputs) if y.dim() >= -time[1] and y.shape[time[1]] == rows)
    if not timed:
        shapes = ", ".join(str(tuple(y.shape)) for y in outputs)
        raise ValueError(
            f"{stated} must be an axis of an output with {rows} rows, as the input has; got {shapes}: "
            "pass time=(input axis, output axis), or None without a time axis"
        )
    return timed


def _guess_time_axis(run: Run, tensors: Sequence[Any], inputs: int) -> int | None:
    """The axis along which rows remember earlier rows and know no later ones; None if there is not exactly one."""
    first = tensors[0] if tensors else None
    if first is None or not is_floating(first):
        return None
    axes = [axis for axis in (-2, -1, -3, -4) if first.dim() >= -axis and first.shape[axis] > 2]
    candidates = [axis for axis in axes if _is_time(run, tensors[:inputs], tensors[inputs:], axis)]
    return candidates[0] if len(candidates) == 1 else None


def _looks_ahead(run: Run, tensors: Sequence[Any], time: tuple[int, int], inputs: int) -> bool:
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
        if _looks_ahead(run, [*tensors, *state], (axis, axis), len(tensors)):
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


def _batches_are_free(run: Run, tensors: Sequence[Any]) -> bool:
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
