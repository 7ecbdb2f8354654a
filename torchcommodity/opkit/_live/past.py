"""What a causal function keeps of the rows that it has seen."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor


class Past:
    """What a causal function keeps of earlier rows: tensors by name, none before the first row.

    A function reads what it kept with `get` and replaces it with `keep`. Tensors that it has read are never written to.

    Args:
        tensors: What was kept after the last call; None for a call on all rows, after which nothing is needed.
    """

    def __init__(self, tensors: Mapping[str, Tensor] | None = None) -> None:
        self.live = tensors is not None
        self._before, self.tensors = dict(tensors or {}), dict(tensors or {})

    def get(self, name: str) -> Tensor | None:
        """The tensor of this name before this call, or None."""
        return self._before.get(name)

    def keep(self, name: str, value: Tensor) -> None:
        """Replace the tensor of this name after this call."""
        self.tensors[name] = value

    def keep_last(self, name: str, x: Tensor) -> None:
        """Keep the last row of `x` (..., T, N), if there is one."""
        if self.live and x.shape[-2]:
            self.keep(name, x[..., -1, :].clone())

    def with_rows(self, name: str, x: Tensor, window: int, time: int = -2) -> Tensor:
        """Earlier rows followed by those of `x`: what functions of the last `window` rows need.

        The first row is a multiple of `window`, counted from the first row ever: kernels that cut time into blocks of
        this length (van Herk) then see the same blocks as in one call on all rows.

        Args:
            name: Name of the rows that are kept: at least the last `window` - 1, at most 2 `window` - 1.
            x: New rows.
            window: Number of rows.
            time: Time axis of `x`, negative.

        Returns:
            Earlier rows and `x`, concatenated.
        """
        before = self.get(name)
        rows = x if before is None else torch.cat([before, x], time)
        drop = max(rows.shape[time] // window - 1, 0) * window
        self.keep(name, rows.narrow(time, drop, rows.shape[time] - drop).clone() if drop or rows is x else rows)
        return rows

    def call(self, name: str, function: Any, *rows: Tensor, **settings: Any) -> Any:
        """Results of another function with live updates for these rows; what it keeps is kept under `name`."""
        if not self.live:
            return function(*rows, **settings)
        state = {key[len(name) + 1 :]: x for key, x in self._before.items() if key.startswith(f"{name}.")}
        state = state or function.start(*(x[..., :0, :] for x in rows), **settings)
        state, results = function.update(state, *rows)
        for key, x in state.items():
            self.keep(f"{name}.{key}", x)
        return results

    def lag(self, name: str, x: Tensor, first: float = 0) -> Tensor:
        """The row before each row of `x` (..., T, N); `first` before the first row ever."""
        before = self.get(name)
        rows = torch.cat([torch.full_like(x[..., :1, :], first) if before is None else before.unsqueeze(-2), x], -2)
        self.keep_last(name, x)
        return rows[..., : x.shape[-2], :]

    def cumsum(self, name: str, x: Tensor, time: int = -2) -> Tensor:
        """Sum of all rows so far of `x`, in float64 in the order of one call; of a mask, the number of true values."""
        before = self.get(name)
        if before is None:
            total = x.cumsum(time)
        elif x.is_floating_point():
            total = torch.cat([before, x], time).cumsum(time).narrow(time, 1, x.shape[time])
        else:
            total = x.cumsum(time) + before
        if self.live and x.shape[time]:
            self.keep(name, total.narrow(time, x.shape[time] - 1, 1).clone())
        return total

    def count_rows(self, name: str, x: Tensor) -> Tensor:
        """Numbers of the rows of `x` (..., T, N) among all rows ever: int64 (T,), from zero."""
        before, rows = self.get(name), torch.arange(x.shape[-2], device=x.device)
        rows = rows if before is None else rows + before
        self.keep(name, torch.full((), x.shape[-2], device=x.device) if before is None else before + x.shape[-2])
        return rows
