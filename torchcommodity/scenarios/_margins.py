"""Monotone maps that give simulated paths the quantiles of a forecast and keep their ranks."""

from collections.abc import Sequence

import torch
from torch import Tensor


def match_margins(
    paths: Tensor,  # (N, T, P)
    quantiles: Tensor,  # (H, N, Q)
    horizons: Sequence[int],
    levels: Sequence[float],
) -> Tensor:  # (N, T, P)
    """Map cumulative log-returns of paths so that, at each horizon, their quantiles are those of the forecast.

    With s_t the standard deviation of the paths at row t, the path X_t becomes s_t G_t(X_t / s_t). At a horizon, G_t is
    the increasing, piecewise linear function from the paths' quantiles to those of the forecast, continued beyond
    the outermost levels with the mean slope of that side, so that the tails keep their simulated shape. Before the
    first horizon G_t is that of the first; between two it is interpolated linearly in the square root of time.

    A mapped path depends at every row on that row of its own only, is as continuous as before, and keeps its rank among
    the paths: the dependence over time and among symbols (the empirical copula) is that of the simulation.

    Args:
        paths: cumulative log-returns of P paths over T rows; T is a horizon.
        quantiles: of the cumulative log-return.
        horizons: H ascending numbers of rows, the last one T.
        levels: Q ascending probabilities.
    """
    scale = paths.std(-1, correction=0).clamp(min=torch.finfo(paths.dtype).tiny)  # (N, T)
    maps = [_fit_map(paths[:, h - 1], q, scale[:, h - 1], levels) for h, q in zip(horizons, quantiles)]
    unit, first, before = paths / scale[..., None], 0, maps[0]
    mapped = torch.empty_like(paths)
    for horizon, after in zip(horizons, maps):
        times = torch.arange(first + 1, horizon + 1, dtype=paths.dtype).sqrt()
        weight = ((times - first**0.5) / (horizon**0.5 - first**0.5))[:, None]
        x = unit[:, first:horizon].contiguous()
        y = _interpolate(x, *after)
        mapped[:, first:horizon] = y if before is after else torch.lerp(_interpolate(x, *before), y, weight)
        first, before = horizon, after
    return mapped.mul_(scale[..., None])


def path_quantiles(paths: Tensor, levels: Tensor) -> Tensor:  # (..., P), (Q,) -> (..., Q)
    """Quantiles over the last axis, linear between the order statistics, of any number of values."""
    ordered, position = paths.sort(-1).values, levels.to(paths) * (paths.shape[-1] - 1)
    low = position.floor().long()
    high = (low + 1).clamp(max=paths.shape[-1] - 1)
    return torch.lerp(ordered[..., low], ordered[..., high], position - low)


def _fit_map(
    paths: Tensor, quantiles: Tensor, scale: Tensor, levels: Sequence[float]
) -> tuple[Tensor, Tensor]:  # (N, P), (N, Q), (N,) -> (N, Q + 2) twice
    """Knots of the map of one horizon, in units of the scale, with one more beyond each end."""
    x = path_quantiles(paths, torch.tensor(levels, dtype=paths.dtype)) / scale[:, None]
    y, middle = quantiles / scale[:, None], len(levels) // 2
    # far beyond every path, so that the last segment is the continuation of the map
    reach = 2 * paths.abs().amax(-1, keepdim=True) / scale[:, None] + 1
    slopes = [_slope(x[:, middle] - x[:, 0], y[:, middle] - y[:, 0])]
    slopes.append(_slope(x[:, -1] - x[:, middle], y[:, -1] - y[:, middle]))
    ends = [(x[:, :1] - reach, y[:, :1] - reach * slopes[0]), (x[:, -1:] + reach, y[:, -1:] + reach * slopes[1])]
    return torch.cat([ends[0][0], x, ends[1][0]], 1), torch.cat([ends[0][1], y, ends[1][1]], 1)


def _slope(dx: Tensor, dy: Tensor) -> Tensor:  # (N,), (N,) -> (N, 1)
    """Slope of one side; 1 where a side has no level, as with a single one."""
    return torch.where(dx > 0, dy / dx, 1.0)[:, None]


def _interpolate(x: Tensor, knots: Tensor, values: Tensor) -> Tensor:  # (N, T, P), (N, K), (N, K) -> (N, T, P)
    flat = x.reshape(len(x), -1)
    right = torch.searchsorted(knots, flat).clamp(1, knots.shape[1] - 1)
    slope = values.diff() / knots.diff().clamp(min=torch.finfo(knots.dtype).tiny)
    offset = values[:, :-1] - slope * knots[:, :-1]
    segment = right - 1
    return (offset.gather(1, segment) + slope.gather(1, segment) * flat).view_as(x)
