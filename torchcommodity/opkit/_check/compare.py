"""How results are compared: NaN equals NaN, dtypes and shapes are part of the result."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

FLOOR = 1e-3  # below it a result that should be zero may be a rounding error


def same(got: Sequence[Tensor], expected: Sequence[Tensor], tolerance: float, what: str) -> None:
    """Equal up to `tolerance`, relative to each element and to the middle size of the tensor."""
    assert len(got) == len(expected), f"{what}: {len(got)} tensors, not {len(expected)}"
    for i, (x, y) in enumerate(zip(got, expected)):
        which = f"{what}{f' (output {i})' if len(got) > 1 else ''}"
        assert x.shape == y.shape, f"{which}: shape {tuple(x.shape)}, not {tuple(y.shape)}"
        assert x.dtype == y.dtype, f"{which}: {x.dtype}, not {y.dtype}"
        _close(x.detach(), y.detach(), tolerance, which)


def same_bits(got: Sequence[Tensor], expected: Sequence[Tensor], what: str) -> None:
    same(got, expected, 0.0, what)


def unchanged(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Copies, to be compared with later."""
    return [x.detach().clone() for x in tensors]


def _close(x: Tensor, y: Tensor, tolerance: float, which: str) -> None:
    missing = x.isnan() != y.isnan()
    at = missing.nonzero()
    assert not len(at), f"{which}: {x[tuple(at[0])].item()} at {tuple(at[0].tolist())}, not {y[tuple(at[0])].item()}"
    error = torch.where(x == y, 0.0, (x - y).abs().double()).nan_to_num(0.0, posinf=torch.inf)
    allowed = tolerance * (y.abs().double().nan_to_num(0.0) + _size(y))
    at = (error > allowed).nonzero()
    if len(at):
        i = tuple(at[0])
        where, count = tuple(at[0].tolist()), f"{len(at)} of {x.numel()} elements"
        raise AssertionError(f"{which}: {x[i].item():.8g} at {where}, not {y[i].item():.8g}; {count} differ")


def _size(y: Tensor) -> Tensor:
    known = y.double().abs()[y.isfinite() & (y != 0)]
    return known.median().clamp(min=FLOOR) if known.numel() else torch.tensor(FLOOR, dtype=torch.double)
