"""The time axis, causality and batching of a foreign operator, as stated or as its first sample shows them."""

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from torchcommodity.opkit._cases import Sample
from torchcommodity.opkit._contract.foreign import ForeignOp
from torchcommodity.opkit._contract.guess_time import batches_are_free, guess_time_axis, looks_ahead, runner


def measure(op: ForeignOp) -> ForeignOp:
    """The operator with its time axis, causality and batching, as stated or as the first sample shows them."""
    sample = op.data.samples[0]
    run, inputs = runner(op.data.function, sample), op.num_inputs(sample)
    time, guesses = op.declaration.axes, dict(op.guesses)
    if op.declaration.time == "guess":
        axis = guess_time_axis(run, sample.tensors, inputs)
        time = None if axis is None else (axis, axis)
        if time:
            guesses["time"] = f"time={axis} (rows remember earlier rows of this axis, and know no later ones)"
    causal = op.declaration.causal
    timed: tuple[int, ...] = ()
    if time:
        timed = _timed_outputs(op, run(sample.tensors), sample, time)
        if causal is None:
            causal = "time" in guesses or not looks_ahead(
                lambda x: [run(x)[i] for i in timed], sample.tensors, time, inputs
            )
            guesses["causal"] = f"causal={causal} (measured)"
    free = not op.state_names and batches_are_free(run, sample.tensors)
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
