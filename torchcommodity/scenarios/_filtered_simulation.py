"""Filtered historical simulation: joint paths of returns, whose shocks are those of past days.

    r_t = sqrt(h_t) L_t e_t,   L_t L_t' = the DCC correlation of row t

The GARCH variances h and the correlations of the past take the shocks e out of its returns. Rows of shocks, resampled
in blocks, then go through the same recurrences, which every step of a path updates.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from torch_opkit.arguments import current_operation, operation
from torchcommodity.models import Har, own_rows, scale_inputs
from torchcommodity.ops import dcc_correlation, dcc_fit, garch_variance
from torchcommodity.scenarios._bootstrap import resampled_rows
from torchcommodity.scenarios._margins import match_margins
from torchcommodity.training import ModelInputs, one_thread, without_extra_terms

BLOCK = {"daily": 63.0, "weekly": 13.0, "monthly": 3.0}
"""Mean rows of a block, a quarter; chosen on 2010 to 2016, see docs/results/scenarios.md. The rule of Politis and White
sees one series at a time, nearly without dependence once the volatility is taken out; but markets that are priced at
different hours follow one another on later days, and a spread reverts over weeks."""
MIN_PATHS = 1000  # paths behind the margins; fewer requested paths are the first of these


class SimulatedReturns(NamedTuple):
    """Joint paths of N symbols over T rows; log-returns are changes of asinh(P / S) where `Har` has a price scale."""

    log_returns: Tensor  # (P, T, N) cumulative
    roll_gaps: Tensor  # (T, N) expected log-return of each row by contract rolls (and averaging), 0 on other rows
    location: Tensor  # (T, N) expected log-return of each row by related prices and the season
    block: float  # mean block length of the bootstrap, in rows
    residual_rows: int  # past rows that were resampled


@operation("filtered_historical_simulation")
@one_thread()
@torch.no_grad()
def filtered_historical_simulation(
    har: Har, inputs: ModelInputs, quantiles: Tensor, *, rows: int, paths: int, seed: int = 0
) -> SimulatedReturns:
    """Simulate joint paths of log-returns that have the quantiles of a forecast.

    See `forecast.Forecaster.simulate` for the method and its references.

    Args:
        har: fitted econometric part of a forecaster, on the CPU.
        inputs: past prices, with the rolls up to the longest horizon.
        quantiles: (H, N, Q) of the cumulative log-return at the horizons and levels of `har`.
        rows: T, rows per path, up to the longest horizon.
        paths: P, number of paths. The margins are matched over at least 1000 paths, of which these are the first.
        seed: random seed.

    Raises:
        ValueError: fewer rows than the warm-up have a residual of every symbol.

    Example:
        >>> from torchcommodity import data, forecast, training
        >>> oil = data.embedded(["WTI", "BRENT"]).between("2012-01-01", "2018-12-31")
        >>> forecaster, inputs = forecast.fit(oil), training.model_inputs(oil, 126)
        >>> quantiles = forecaster.predict(oil).log_returns
        >>> filtered_historical_simulation(forecaster.model.har, inputs, quantiles, rows=21, paths=2).log_returns.shape
        torch.Size([2, 21, 2])
    """
    history = filter_history(har, inputs)
    block, random = BLOCK[har.config.frequency], torch.Generator().manual_seed(seed)
    row_numbers = resampled_rows(len(history.shocks), max(paths, MIN_PATHS), block, random)
    # up to the next horizon of the forecast, at which the margins are known
    horizons = [h for i, h in enumerate(har.config.horizons) if i == 0 or har.config.horizons[i - 1] < rows]
    simulated = filtered_paths(har, history, row_numbers, horizons[-1])
    location = location_path(har, inputs)
    shift = history.roll_shift + location
    centered = quantiles[: len(horizons)] - shift[[h - 1 for h in horizons], :, None]
    cumulative = match_margins(simulated, centered, horizons, har.config.levels)[:, :rows, :paths]
    log_returns = (cumulative + shift[:rows].T[..., None]).permute(2, 1, 0)
    roll_gaps, expected = steps(history.roll_shift[:rows]), steps(location[:rows])
    return SimulatedReturns(log_returns, roll_gaps, expected, block, len(history.shocks))


def location_path(har: Har, inputs: ModelInputs) -> Tensor:  # (A, N)
    """Expected change of the log price up to each row ahead by related prices and the season: straight lines between
    the horizons of the model."""
    total = har(*inputs.batch(), last_rows=1).shift[0, -1]
    scaled = scale_inputs(inputs, har.scale).unsqueeze()
    at_horizons = total - har.adjust_rolls(scaled, last_rows=1).shift[0, -1]  # (H, N)
    points = torch.cat([torch.zeros_like(at_horizons[:1]), at_horizons])
    known = torch.tensor([0, *har.config.horizons], dtype=torch.double)
    rows = torch.arange(1, har.config.horizons[-1] + 1, dtype=torch.double)
    k = torch.bucketize(rows, known)  # known[k - 1] < row <= known[k]
    share = ((rows - known[k - 1]) / (known[k] - known[k - 1])).unsqueeze(-1)
    return points[k - 1] + share * (points[k] - points[k - 1])


class DynamicCorrelation(NamedTuple):
    """DCC of N residuals after the last row; see `ops.dcc_correlation`."""

    a: Tensor  # ()
    b: Tensor  # ()
    target: Tensor  # (N, N)
    q: Tensor  # (N, N), or (P, N, N) of P paths: Q of the next row

    def correlate(self, shocks: Tensor) -> tuple[Tensor, "DynamicCorrelation"]:  # (P, N) -> (P, N)
        """Give uncorrelated shocks the correlation of the next row, and update it."""
        z = (_factor(self.q) @ shocks.unsqueeze(-1)).squeeze(-1)
        q = (1 - self.a - self.b) * self.target + self.a * z.unsqueeze(-1) * z.unsqueeze(-2) + self.b * self.q
        return z, self._replace(q=q)


class FilteredHistory(NamedTuple):
    """Shocks of the past, and the state from which paths continue over the A rows of the longest horizon."""

    shocks: Tensor  # (R, N) residuals of complete rows, uncorrelated if there is a dynamic correlation
    variance: Tensor  # (N,) GARCH variance of the next row
    correlation: DynamicCorrelation | None  # None: the rows keep their correlation
    roll_shift: Tensor  # (A, N) expected change of the log price up to each row ahead by rolls, and by averaging
    gap_variance: Tensor  # (A, N) variance of the gaps up to each row ahead that no curve gives


def filter_history(har: Har, inputs: ModelInputs) -> FilteredHistory:
    """Take rolls, volatility and correlation out of the past returns.

    Raises:
        ValueError: fewer rows than the warm-up have a residual of every symbol.
    """
    every_row = tuple(range(1, har.config.horizons[-1] + 1))
    daily = Har(har.assets, replace(without_extra_terms(har.config), horizons=every_row))
    if har.config.averages:
        daily.theta.copy_(har.theta)
    if har.config.bars:
        daily.has_ranges.copy_(har.has_ranges)
    adjusted = daily.adjust_rolls(scale_inputs(inputs, har.scale).unsqueeze(), last_rows=1)
    residuals, variance = standardized_residuals(har, adjusted.returns[0], adjusted.shocks[0])
    complete = int(residuals.isfinite().all(1).sum())
    if complete < har.config.warmup:
        rule = f"at least {har.config.warmup} rows after the warm-up must have a return of every symbol"
        got = f"{complete} of {len(residuals)} rows"
        raise ValueError(f"{current_operation()}: {rule}; got {got}: select symbols whose prices overlap for longer")
    shocks, correlation = remove_correlation(residuals)
    shocks = shocks - shocks.mean(0)
    shocks = shocks / shocks.std(0, correction=0)
    return FilteredHistory(shocks, variance, correlation, adjusted.shift[0, -1], adjusted.gap_variance[0, -1])


def standardized_residuals(har: Har, returns: Tensor, shocks: Tensor) -> tuple[Tensor, Tensor]:  # -> (W, N), (N,)
    """Divide the returns by the GARCH volatility that the rows before forecast; mean 0 and variance 1 per symbol.

    A symbol's variance runs over its own returns, so that a holiday of one market changes nothing.

    Args:
        har: fitted econometric part of a forecaster.
        returns: (T, N) capped log-returns, NaN where missing or rolled.
        shocks: (T, N) what the variance runs over, see `models.AdjustedReturns`.

    Returns:
        The residuals of the rows after the warm-up, NaN where a symbol has no return, and the variance of the next row.
    """
    own = own_rows(shocks[None])
    variance = garch_variance(own.returns, *(x.to(returns) for x in har.garch_parameters()))[0]
    counts = own.counts[0]
    # the variance at index k depends on the first k shocks, and shock k - 1 is that of the row with count k
    residuals = returns / variance.gather(0, (counts - 1).clamp(min=0)).sqrt()
    rows = residuals[(counts > har.config.warmup).all(1)]
    rows = rows - rows.nanmean(0)
    return rows / rows.square().nanmean(0).sqrt(), variance.gather(0, counts[-1:])[0]


def remove_correlation(residuals: Tensor) -> tuple[Tensor, DynamicCorrelation | None]:  # (W, N) -> (R, N)
    """Complete rows of residuals without their correlation, and the DCC of the row after the last.

    The correlation of a row is that which the rows before it imply, and the Cholesky factor in the order of the symbols
    takes it out. Where DCC cannot be estimated (one symbol, few rows), the rows keep their correlation, which a
    resampled row then has again: constant conditional correlation.

    Args:
        residuals: standardized, NaN where missing.

    References:
        Engle (2002). Dynamic conditional correlation. J. Business & Economic Statistics 20(3).
        doi:10.1198/073500102288618487.
    """
    complete = residuals.isfinite().all(1)
    fit = dcc_fit(residuals) if residuals.shape[1] > 1 else None
    if fit is None or not bool(fit.converged):
        return residuals[complete], None
    # one more row, so that the last Q is that of the row after the panel
    rows = torch.cat([residuals, torch.full_like(residuals[:1], torch.nan)])
    q = dcc_correlation(rows, fit.a, fit.b, fit.target, normalize=False)
    shocks = torch.linalg.solve_triangular(_factor(q[:-1][complete]), residuals[complete].unsqueeze(-1), upper=False)
    return shocks.squeeze(-1), DynamicCorrelation(fit.a, fit.b, fit.target, q[-1])


def filtered_paths(
    har: Har, history: FilteredHistory, row_numbers: Iterator[Tensor], rows: int
) -> Tensor:  # each (P,) -> (N, T, P)
    """Cumulative log-returns without the expected roll gaps: resampled shocks, correlated and scaled.

    Every step of a path updates its GARCH variance and its correlation. An uncertain roll gap adds its variance to the
    step of its row, not to the volatility of later ones.
    """
    omega, alpha, beta = har.garch_parameters()
    variance, correlation = history.variance, history.correlation
    path = []
    for gap, row in zip(steps(history.gap_variance[:rows]), row_numbers):
        shocks = history.shocks[row]  # (P, N)
        if correlation is not None:
            shocks, correlation = correlation.correlate(shocks)
        path.append(((variance + gap).sqrt() * shocks).T)
        step = har.clip(variance.sqrt() * shocks)
        variance = omega + alpha * step.square() + beta * variance
    return torch.stack(path, 1).cumsum_(1)


def steps(cumulative: Tensor) -> Tensor:  # (A, N) -> (A, N)
    """Change on each row."""
    return cumulative.diff(dim=0, prepend=torch.zeros_like(cumulative[:1]))


def _factor(q: Tensor) -> Tensor:  # (..., N, N)
    """Cholesky factor of Q scaled to a unit diagonal."""
    scale = q.diagonal(dim1=-2, dim2=-1).rsqrt()
    factor: Tensor = torch.linalg.cholesky(q) * scale.unsqueeze(-1)
    return factor
