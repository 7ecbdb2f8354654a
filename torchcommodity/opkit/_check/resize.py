"""The same sample in another size: what it holds is repeated, so that it stays in the domain of the operator."""

import torch
from torch import Tensor

from torchcommodity.opkit._check.subject import Subject


def resized(
    subject: Subject, *, batch: int | None = None, rows: int | None = None, assets: int | None = None
) -> Subject:
    """Axes of length one stay: they broadcast. `batch` is the first axis, if the first tensor has one to lead with."""
    first = subject.tensors[0]
    wide, leading = first.shape[-1], first.shape[: subject.batch_axes]

    def resize(i: int, x: Tensor) -> Tensor:
        if i in subject.panels and rows is not None:
            x = repeated(x, subject.time[0], rows)
        if assets is not None and wide > 1:
            for axis in range(1 + subject.time[0] if i in subject.panels else -1, 0):
                x = repeated(x, axis, assets) if x.dim() >= -axis and x.shape[axis] == wide else x
        lead = len(leading) and x.dim() > (len(leading) if i in subject.panels else 0) and x.shape[0] == leading[0] > 1
        return repeated(x, 0, batch) if batch is not None and lead and not _is_assets(i, x) else x

    def _is_assets(i: int, x: Tensor) -> bool:
        return i not in subject.panels and x.dim() == 1 and wide == leading[0]

    tensors = [resize(i, x) if isinstance(x, Tensor) else x for i, x in enumerate(subject.tensors)]
    return subject.given(tensors)


def repeated(x: Tensor, axis: int, length: int) -> Tensor:
    """Forwards, then backwards, and so on: no seam, and no rows that are constant where they were not."""
    if not x.shape[axis]:
        return x
    parts = [x, x.flip(axis)] * (length // (2 * x.shape[axis]) + 1)
    return torch.cat(parts, axis).narrow(axis, 0, length).contiguous()
