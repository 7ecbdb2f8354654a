"""Comparison of results: NaN equals NaN; dtype and shape must match."""

from collections.abc import Sequence

import torch
from torch import Tensor

FLOOR = 1e-3  # smallest scale of the tolerance: a result that should be zero may be a rounding error


def assert_close(actual: Sequence[Tensor], expected: Sequence[Tensor], tolerance: float, label: str) -> None:
    """Check equality up to `tolerance`, relative to each element and to the median size of the tensor."""
    assert len(actual) == len(expected), f"{label}: expected {len(expected)} tensors; got {len(actual)}"
    for i, (x, y) in enumerate(zip(actual, expected)):
        name = f"{label}{f' (output {i})' if len(actual) > 1 else ''}"
        assert x.shape == y.shape, f"{name}: expected shape {tuple(y.shape)}; got {tuple(x.shape)}"
        assert x.dtype == y.dtype, f"{name}: expected {y.dtype}; got {x.dtype}"
        x, y = x.detach(), y.detach()
        at = first_index(x.isnan() != y.isnan())
        assert at is None, f"{name}: expected {y[at].item()} at {at}; got {x[at].item()}"
        if x.dtype == torch.bool:
            x, y = x.int(), y.int()  # which can be subtracted
        error = torch.where(x == y, 0.0, (x - y).abs().double()).nan_to_num(0.0, posinf=torch.inf)
        if not error.any():  # as in most comparisons: the median below would take most of their time
            continue
        sizes = y.double().abs()[y.isfinite() & (y != 0)]
        scale = sizes.median().clamp(min=FLOOR) if sizes.numel() else torch.tensor(FLOOR, dtype=torch.double)
        wrong = error > tolerance * (y.abs().double().nan_to_num(0.0) + scale)
        at = first_index(wrong)
        if at is not None:
            count = f"{int(wrong.sum())} of {x.numel()} elements differ"
            raise AssertionError(f"{name}: expected {y[at].item():.8g} at {at}; got {x[at].item():.8g}; {count}")


def assert_bitwise_equal(actual: Sequence[Tensor], expected: Sequence[Tensor], label: str) -> None:
    assert_close(actual, expected, 0.0, label)


def first_index(mask: Tensor) -> tuple[int, ...] | None:
    """Index of the first True element."""
    indices = mask.nonzero()
    return tuple(indices[0].tolist()) if len(indices) else None
