"""Filtered historical simulation: what the past of a panel gives to it, and its paths."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from torchcommodity.forecast._dependence import DynamicCorrelation, remove_correlation
from torchcommodity.forecast._residuals import standardized_residuals
from torchcommodity.models import Har
from torchcommodity.training import ModelInputs, without_extra_terms


class RollsAhead(NamedTuple):
    """What contract rolls, and the averaging of averages, do to the log price up to each of the A rows ahead."""

    shift: Tensor  # (A, N) expected change
    variance: Tensor  # (A, N) variance of the gaps that no curve gives


class FilteredHistory(NamedTuple):
    """Shocks of the past, and the state from which paths continue."""

    shocks: Tensor  # (R, N) residuals of complete rows, uncorrelated if there is a dynamic correlation
    variance: Tensor  # (N,) GARCH variance of the next row
    correlation: DynamicCorrelation | None  # None: the rows keep their correlation
    rolls: RollsAhead


def filter_history(har: Har, inputs: ModelInputs) -> FilteredHistory:
    """Take rolls, volatility and correlation out of the past returns.

    Raises:
        ValueError: fewer rows than the warm-up have a residual of every symbol.
    """
    returns, rolls = _adjust_rolls(har, inputs)
    residuals = standardized_residuals(har, returns)
    complete = int(residuals.complete.sum())
    if complete < har.config.warmup:
        rule = f"at least {har.config.warmup} rows after the warm-up must have a return of every symbol"
        got = f"{complete} of {len(residuals.rows)} rows"
        raise ValueError(f"simulate: {rule}; got {got}: select symbols whose prices overlap for longer")
    shocks, correlation = remove_correlation(residuals.rows)
    shocks = shocks - shocks.mean(0)
    return FilteredHistory(shocks / shocks.std(0, correction=0), residuals.variance, correlation, rolls)


def filtered_paths(
    har: Har, history: FilteredHistory, row_numbers: Iterator[Tensor], rows: int
) -> Tensor:  # each (P,) -> (N, T, P)
    """Cumulative log-returns without the expected roll gaps: resampled shocks, correlated and scaled.

    Every step of a path updates its GARCH variance and its correlation. An uncertain roll gap adds its variance to the
    step of its row, not to the volatility of later ones.
    """
    omega, alpha, beta = har.garch_parameters()
    variance, correlation, cap = history.variance, history.correlation, har.config.cap
    path = []
    for gap, row in zip(steps(history.rolls.variance[:rows]), row_numbers):
        shocks = history.shocks[row]  # (P, N)
        if correlation is not None:
            shocks, correlation = correlation.correlate(shocks)
        path.append(((variance + gap).sqrt() * shocks).T)
        step = (variance.sqrt() * shocks).clamp(-cap, cap)
        variance = omega + alpha * step.square() + beta * variance
    return torch.stack(path, 1).cumsum_(1)


def steps(cumulative: Tensor) -> Tensor:  # (A, N) -> (A, N)
    """Change on each row."""
    return cumulative.diff(dim=0, prepend=torch.zeros_like(cumulative[:1]))


def _adjust_rolls(har: Har, inputs: ModelInputs) -> tuple[Tensor, RollsAhead]:  # (T, N)
    """Returns without those of roll days, and the rolls up to each row ahead."""
    every_row = tuple(range(1, har.config.horizons[-1] + 1))
    daily = Har(har.assets, replace(without_extra_terms(har.config), horizons=every_row))
    if har.config.averages:
        daily.theta.copy_(har.theta)
    result = daily.adjust_rolls(*inputs.batch(), last_rows=1)
    return result.returns[0], RollsAhead(result.shift[0, -1], result.gap_variance[0, -1])
