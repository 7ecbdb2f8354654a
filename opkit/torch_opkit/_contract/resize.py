"""A sample in another size. Its values are repeated, so that they stay in the domain of the operator."""

import time

import torch
from torch import Tensor

from torch_opkit._contract.case import Case, SkipCheck
from torch_opkit._op import Op


def resize(case: Case, *, batch: int | None = None, rows: int | None = None, assets: int | None = None) -> Case:
    """Resize the first batch axis, the time axis and the asset axis; axes of length one stay, as they broadcast."""
    first = case.tensors[0]
    width, leading = first.shape[-1], first.shape[: case.num_batch_axes]

    def resize_tensor(i: int, x: Tensor) -> Tensor:
        if i >= case.num_inputs:
            return x
        is_panel = i in case.panel_indices
        if is_panel and rows is not None:
            x = repeat_to(x, case.time[0], rows)
        if assets is not None and width > 1 and not is_panel and x.shape[-2:] == (width, width):
            x = repeat_diagonal(x, assets)
        elif assets is not None and width > 1:
            for axis in range(1 + case.time[0] if is_panel else -1, 0):
                x = repeat_to(x, axis, assets) if x.dim() >= -axis and x.shape[axis] == width else x
        return repeat_to(x, 0, batch) if batch is not None and has_batch_axis(i, x) else x

    def has_batch_axis(i: int, x: Tensor) -> bool:
        if not leading or x.dim() <= (len(leading) if i in case.panel_indices else 0):
            return False
        is_asset_axis = i not in case.panel_indices and x.dim() == 1 and width == leading[0]
        return bool(x.shape[0] == leading[0] > 1) and not is_asset_axis

    tensors = [resize_tensor(i, x) if isinstance(x, Tensor) else x for i, x in enumerate(case.tensors)]
    return case.with_tensors(tensors)


def repeat_to(x: Tensor, axis: int, length: int) -> Tensor:
    """Repeat x along an axis, alternately forwards and backwards, which adds no jumps."""
    if not x.shape[axis]:
        return x
    parts = [x, x.flip(axis)] * (length // (2 * x.shape[axis]) + 1)
    return torch.cat(parts, axis).narrow(axis, 0, length).contiguous()


def repeat_diagonal(x: Tensor, length: int) -> Tensor:
    """Repeat square matrices (..., N, N) along their diagonal: covariance matrices stay positive definite."""
    copies = length // x.shape[-1] + 1
    blocks = torch.einsum("ab,...ij->...aibj", torch.eye(copies, dtype=x.dtype, device=x.device), x)
    return blocks.flatten(-4, -3).flatten(-2)[..., :length, :length].contiguous()


def require_runs(case: Case) -> Case:
    """Return the resized case, or skip the check: arguments such as a (T, T) mask fit one length only."""
    if not isinstance(case.op, Op):
        try:
            case.call()
        except Exception as error:
            message = f"{type(error).__name__}: {error}"[:120]
            raise SkipCheck(f"does not run on the sample in another size: {message}") from error
    return case


def affordable_rows(case: Case, rows: int, seconds: float = 0.1) -> int:
    """At most `rows` rows; fewer if a call would take longer than about `seconds`: a loop, or a matrix of T by T."""
    count = case.rows
    while 0 < 4 * count < rows:
        count *= 4
        longer = require_runs(resize(case, rows=count))
        start = time.perf_counter()
        with torch.no_grad():
            longer.call()
        if time.perf_counter() - start > seconds / 16:
            return count
    return rows
