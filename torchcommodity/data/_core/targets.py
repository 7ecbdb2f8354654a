"""Targets of a forecast: cumulative log-returns over each horizon."""

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from torch_opkit.arguments import check_tensor, raise_invalid


def targets(
    prices: Tensor,  # (T, N)
    horizons: Sequence[int],
) -> Tensor:  # (T, H, N)
    """Cumulative log-return over each horizon: ln of the symbol's h-th later positive price over its price at row t.

    A symbol's horizon counts its own rows, those with a positive price: a row on which only other symbols trade is none
    of them, nor is a zero or negative price, which has no log-return. NaN where row t has no positive price, and where
    fewer than h follow.

    Args:
        prices: in any unit; NaN = missing.
        horizons: H numbers of rows; `horizon_rows` converts texts such as "1w".

    Raises:
        TypeError: `prices` is not a Tensor, such as `panel.values`, or a horizon is not an int.
        ValueError: prices that are not (T, N), no horizon, or one below 1.

    >>> prices = torch.tensor([[1.0, 1.0], [torch.nan, 1.0], [4.0, 1.0], [8.0, torch.nan]])
    >>> targets(prices, [1])[:, 0] / torch.tensor(2.0).log()
    tensor([[2., 0.],
            [nan, 0.],
            [1., nan],
            [nan, nan]])
    """
    rows = _rows(prices, _check("targets", prices, horizons))
    log = torch.where(_positive(prices), prices, torch.nan).log().unsqueeze(1).expand(rows.shape)
    return torch.where(rows >= 0, log.gather(0, rows.clamp(min=0)) - log, torch.nan)


def target_rows(
    prices: Tensor,  # (T, N)
    horizons: Sequence[int],
) -> Tensor:  # (T, H, N) int64
    """Row on which each of `targets` ends, -1 where there is none.

    >>> target_rows(torch.tensor([[1.0], [torch.nan], [4.0], [8.0]]), [1, 2])[:, :, 0].T
    tensor([[ 2, -1,  3, -1],
            [ 3, -1, -1, -1]])
    """
    return _rows(prices, _check("target_rows", prices, horizons))


def _check(operation: str, prices: Any, horizons: Any) -> list[int]:
    check_tensor(operation, prices=prices)
    if prices.dim() != 2:
        raise_invalid(operation, "prices must be (T, N)", prices=prices)
    rule = "horizons must be a list of numbers of rows, such as [5, 21]; horizon_rows converts texts such as '1w'"
    if not isinstance(horizons, Iterable) or not all(hasattr(h, "__index__") for h in horizons):
        raise_invalid(operation, rule, TypeError, horizons=horizons)
    rows = [operator.index(horizon) for horizon in horizons]
    if not rows or min(rows) < 1:
        raise_invalid(operation, "horizons must be at least one number of rows >= 1", horizons=rows)
    return rows


def _rows(prices: Tensor, horizons: Sequence[int]) -> Tensor:
    valid = _positive(prices)
    own_rows = (~valid).to(torch.uint8).argsort(dim=0, stable=True)  # rows with a price first, in order
    later = (
        valid.cumsum(0).unsqueeze(1) - 1 + torch.tensor([min(h, len(prices)) for h in horizons])[:, None]
    )  # (T, H, N)
    ends = valid.unsqueeze(1) & (later < valid.sum(0))
    rows = own_rows.unsqueeze(1).expand(later.shape).gather(0, later.clamp(max=max(len(prices) - 1, 0)))
    return torch.where(ends, rows, -1)


def _positive(prices: Tensor) -> Tensor:
    return torch.isfinite(prices) & (prices > 0)
