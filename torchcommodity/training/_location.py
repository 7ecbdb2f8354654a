"""Fit what is known of where prices go, in closed form: relations of prices, and the season.

Only outcomes of the training rows enter. Everything is divided by the slow volatility over the horizon, so that calm
and volatile periods weigh alike, and each coefficient is drawn toward zero by its evidence F, the share of the variance
of an outcome that it explains over that of a mean of as many independent outcomes as the rows hold.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from torch_opkit import Past
from torchcommodity.models import Location, ModelInputs, known_log_prices, seasonal_waves
from torchcommodity.ops import ewm_mean
from torchcommodity.training._basis import fit_basis
from torchcommodity.training._momentum import fit_momentum

PAIR_PRIOR = 12.0  # F at which half of a reversion is expected
SEASON_PRIOR = 6.0  # likewise of a season
REVERSION_PRIOR = 12.0  # likewise of a spread to its mean
MAX_PAIRS = 64  # of a symbol, those of the strongest correlation: further copies of a price say nothing new
ROUNDING = 1e-9  # of a log ratio
SYMBOLS = 256  # whose correlations with all goods are in memory at a time
ROWS, COLUMNS = 256, 32  # rows of all goods, and goods in all rows, that stay in the cache of a processor


class OwnHistory(NamedTuple):
    """The rows on which a symbol has a price, and goods on them: the last price, which stands for up to 5 rows."""

    rows: Tensor  # (W,) int64
    others: Tensor  # (W, J) log prices of the goods, NaN where not known


class Relations(NamedTuple):
    """A symbol and goods of the same moves, at each horizon: slope and evidence are zero where it does not revert."""

    deviations: Tensor  # (W, J) x
    slope: Tensor  # (H, J) b < 0
    evidence: Tensor  # (H, J) F
    rows: Tensor  # (H, J) int64


@torch.no_grad()
def fit_location(
    location: Location, inputs: ModelInputs, target: Tensor, variance: Tensor, trends: Tensor
) -> Tensor:  # (T, H, N)
    """Fit in place on all rows of `inputs`.

    For a symbol n, another good j and a horizon h, with y, z and c the outcome of n, the deviation x_nj and the change
    of ln P_j until the outcome of n, each over sigma_h = sqrt(h v): j is kept if sum yc / sqrt(sum y^2 sum c^2) reaches
    the rule's `comovement`, the rows its `min_rows`, and b = sum zy / sum z^2 is negative; of more than 64 goods, those
    of the largest correlation at any horizon. With F = b^2 sum z^2 / (h Var(y - bz)), the coefficient of x_nj is
    b F / sum F * F / (F + 12).

    The season is least squares of what is left of the outcomes on the waves, times F / (F + 6). Of monthly prices,
    `fit_momentum` goes on with what that leaves. Futures curves of spot
    prices take the place of both on the rows on which they are known; see `fit_basis`.

    Args:
        location: the module; its pairs and season are overwritten.
        inputs: training rows only.
        target: (T, H, N) outcomes less the expected effect of rolls and averaging; NaN is ignored.
        variance: (T, N) slow variance per row; NaN during warm-up.
        trends: (T, N, K) of `Har.trends`, for `fit_momentum`.

    Returns:
        m, as `Location` gives it after the fit; zero on the rows on which a symbol has no price.
    """
    horizons = location.config.horizons
    carried = CarriedPrices(inputs, location.rule.max_age)
    fitted: dict[int, tuple[Tensor, Tensor, Tensor]] = {}  # by symbol: pairs (M, 2), coefficients (H, M), rows (M,)
    season = torch.zeros_like(location.season)
    # by symbol first: what is known of one lies side by side
    variances, targets = variance.T.contiguous(), target.permute(2, 1, 0).contiguous()
    expected, related = torch.zeros(2, *targets.mT.shape, dtype=target.dtype)  # (N, T, H)
    for group in carried.same_rows(location.assets):
        history = carried.history(group[0])
        for n, similar in each_alike(location, history, group, target, variance):
            own = carried.own_part(history, n)
            sigma = [(h * variances[n, own.rows]).sqrt() for h in horizons]
            outcomes = list(targets[n][:, own.rows])
            others = similar.any(0).nonzero()[:, 0]
            blocks = [
                fit_relations(location, own, n, columns, outcomes, sigma, similar[:, columns])
                for columns in others.split(COLUMNS)
            ]
            x, slope, evidence, rows = (torch.cat(parts, 1) for parts in zip(*blocks))
            weights = shrunk_coefficients(slope, evidence)
            m = torch.stack([x @ w for w in weights], 1)  # (W, H), each horizon with the bits that it has alone
            related[n, own.rows] = m
            if inputs.days is not None:
                waves = seasonal_waves(inputs.days[own.rows].to(variance))
                for i, (y, s, h) in enumerate(zip(outcomes, sigma, horizons)):
                    season[i, n] = fit_season(waves, y - m[:, i], s, h, location.rule.min_rows)
                    m[:, i] += waves @ season[i, n]
            expected[n, own.rows] = m
            nonzero = (weights != 0).any(0)
            pairs = torch.stack([torch.full_like(others, n), others], 1)
            fitted[n] = pairs[nonzero], weights[:, nonzero], rows.amax(0)[nonzero]
    pairs_of, coefficients_of, rows_of = zip(*(fitted[n] for n in range(location.assets)))
    location.set_pairs(torch.cat(pairs_of), torch.cat(coefficients_of, 1), torch.cat(rows_of))
    location.season.copy_(season)
    expected, related = expected.permute(1, 2, 0), related.permute(1, 2, 0)
    expected = location.limit(expected, variance)
    if location.momentum is not None:
        prices, related = inputs.prices[None], location.limit(related, variance)
        features = location.momentum.features(related[None], prices, trends[None], variance[None], Past())
        expected += fit_momentum(location.momentum, [x[0] for x in features], target - expected, variance)
    if location.basis is not None:
        expected = fit_basis(location.basis, inputs, target, variance, expected)
    return fit_reversion(location, inputs.prices, target, variance, expected)


def fit_reversion(location: Location, prices: Tensor, target: Tensor, variance: Tensor, expected: Tensor) -> Tensor:
    """Fit in place the reversion of symbols with a price scale, in closed form.

    With z and y the deviation and what is left of an outcome, each over sigma_h = sqrt(h v), and without an intercept:
    b = min(sum zy / sum z^2, 0) over the rows with both and F = b^2 sum z^2 / (max(h, 126) Var(y - bz)), and the
    coefficient is b F / (F + 12); zero with fewer than 500 rows. A deviation lasts longer than a short horizon, so that
    outcomes half a year apart count as independent.

    Args:
        location: its reversion is overwritten.
        prices: (T, N) of `scale_inputs`.
        target: (T, H, N) outcomes less the expected effect of rolls and averaging; NaN is ignored.
        variance: (T, N) slow variance per row; NaN during warm-up.
        expected: (T, H, N) of the other parts.

    Returns:
        `expected` with the reversion, as `Location.forward`; (T, H, N).
    """
    reversion = location.reversion
    if reversion is None:
        return expected
    rule = reversion.rule
    deviation = reversion.deviations(prices[None], Past(), len(prices))[0]  # (T, M)
    for m, n in enumerate(reversion.columns.tolist()):
        rows = []
        for i, h in enumerate(location.config.horizons):
            sigma = (h * variance[:, n]).sqrt()
            y, valid = standardized(target[:, i, n] - expected[:, i, n], sigma)
            y, z = y[valid], (deviation[:, m] / sigma)[valid]
            squares = z.square().sum()
            b = ((z * y).sum() / squares).clamp(max=0)
            f = b.square() * squares / ((y - b * z).var(correction=0) * max(h, rule.independent))
            is_known = len(y) >= rule.min_rows and bool(f.isfinite())
            reversion.coefficients[i, m] = b * f / (f + REVERSION_PRIOR) if is_known else 0.0
            rows.append(len(y))
        reversion.rows[m] = max(rows)
    changes = location.reversion_changes(reversion, prices[None], variance[None], Past())[0]
    return reversion.add_to(expected, changes)


class CarriedPrices:
    """The last price of every good up to each row, as long as it is not too old in the rows of a symbol."""

    def __init__(self, inputs: ModelInputs, max_age: int) -> None:
        self.max_age = max_age
        log, self.fresh = known_log_prices(inputs.prices, inputs.references)
        numbers = torch.arange(len(log))[:, None].expand_as(log)
        self.source = torch.where(self.fresh, numbers, -1).cummax(0).values  # row of the last price, -1 before it
        self.log = log.gather(0, self.source.clamp(min=0))

    def history(self, n: int) -> OwnHistory:
        """The rows of symbol n, and all goods on them."""
        rows = self.fresh[:, n].nonzero()[:, 0]
        oldest = torch.cat([rows.new_zeros(self.max_age), rows])[: len(rows), None]  # row of a price of that age
        return OwnHistory(rows, self.log[rows].masked_fill_(self.source[rows] < oldest, torch.nan))

    def own_part(self, history: OwnHistory, n: int) -> OwnHistory:
        """`history(n)`, from that of a symbol with the same rows; before n's first row no row of its own has passed."""
        rows = self.fresh[:, n].nonzero()[:, 0]
        if torch.equal(rows, history.rows):
            return history
        start = int(torch.searchsorted(history.rows, rows[0])) if len(rows) else 0
        others, first = history.others[start : start + len(rows)].clone(), rows[: self.max_age]
        others[: self.max_age] = self.log[first].masked_fill_(self.source[first] < 0, torch.nan)
        return OwnHistory(rows, others)

    def same_rows(self, symbols: int) -> list[list[int]]:
        """Groups of symbols that have prices on the same rows from their first to their last one; the longest first."""
        groups: list[list[int]] = []
        fresh = self.fresh[:, :symbols].T.contiguous()
        rows = [own.nonzero()[:, 0] for own in fresh]
        for n in sorted(range(symbols), key=lambda n: -len(rows[n])):
            span = slice(int(rows[n][0]), int(rows[n][-1]) + 1) if len(rows[n]) else slice(0)
            group = next((g for g in groups if torch.equal(fresh[g[0], span], fresh[n, span])), None)
            if group is None:
                groups.append([n])
            else:
                group.append(n)
        return groups


def each_alike(
    location: Location, history: OwnHistory, group: list[int], target: Tensor, variance: Tensor
) -> Iterator[tuple[int, Tensor]]:
    """Each symbol of a group with the goods that move alike (H, J); memory does not grow with their product."""
    for start in range(0, len(group), SYMBOLS):
        part = group[start : start + SYMBOLS]
        yield from zip(part, moves_alike(location, history, part, target, variance).unbind(1))


def moves_alike(
    location: Location, history: OwnHistory, group: list[int], target: Tensor, variance: Tensor
) -> Tensor:  # (T, H, N), (T, N) -> (H, G, J)
    """The goods, at most 64, whose changes over a horizon are most correlated with the outcomes of G symbols.

    The symbols have prices on the same rows: changes are computed once for all of them, and sums are products of
    matrices.
    """
    rule, J = location.rule, history.others.shape[1]
    correlation = torch.zeros(len(location.config.horizons), len(group), J, dtype=torch.double)
    for i, h in enumerate(location.config.horizons):
        if len(history.rows) - h < rule.min_rows:
            continue
        sigma = (h * variance[history.rows][:, group]).sqrt()
        y, valid = standardized(target[history.rows, i][:, group], sigma)
        w = torch.where(valid, 1 / sigma, 0.0)
        of_symbols = y * w, w.square(), y.square(), valid.to(y)  # times c, c^2, 1 and 1
        sums = y.new_zeros(4, len(group), J)
        for start in range(0, len(y) - h, ROWS):
            now = slice(start, min(start + ROWS, len(y) - h))
            then = slice(now.start + h, now.stop + h)
            c = history.others[then] - history.others[now]
            unknown = c.isnan()
            c, known = c.masked_fill_(unknown, 0.0), unknown.logical_not().to(c)
            for total, x, moves in zip(sums, of_symbols, (c, c.square(), known, known)):
                total.addmm_(x[now].T, moves)
        yc, cc, yy, rows = sums
        correlation[i] = torch.where(rows >= rule.min_rows, yc / (cc * yy).sqrt(), 0.0)
    correlation[:, torch.arange(len(group)), group] = 0.0
    highest = correlation.amax(0)
    weak = highest.argsort(dim=1, descending=True, stable=True)[:, MAX_PAIRS:]
    return (correlation >= rule.comovement) & highest.scatter(1, weak, -1.0).gt(-1.0)


def standardized(outcome: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:  # (W,) each
    """Outcomes over their volatility, zero where one of them is not known, and whether both are."""
    y = outcome / sigma
    return torch.where(y.isfinite(), y, 0.0), y.isfinite()


def fit_relations(
    location: Location,
    own: OwnHistory,
    n: int,
    others: Tensor,  # (J,) int64
    outcomes: Sequence[Tensor],  # H of (W,)
    sigmas: Sequence[Tensor],  # H of (W,)
    alike: Tensor,  # (H, J) bool
) -> Relations:
    """Reversion of symbol n to some goods at each horizon; z = x / sigma."""
    rule = location.rule
    ratio = own.others[:, n : n + 1] - own.others.index_select(1, others)
    x = ratio.sub_(ewm_mean(ratio, halflife=rule.halflife, min_periods=rule.min_values, ignore_na=True))
    unknown = x.isnan()
    x, known = x.masked_fill_(unknown, 0.0), unknown.logical_not().to(x)
    x_squares, parts = x.square(), []
    apart = x_squares.mean(0) > ROUNDING**2  # not the same price in another unit
    for h, outcome, sigma, similar in zip(location.config.horizons, outcomes, sigmas, alike):
        y, valid = standardized(outcome, sigma)
        w = torch.where(valid, 1 / sigma, 0.0)
        rows, total, y_squares = torch.stack([valid.to(y), y, y.square()]) @ known
        products, z_total = torch.stack([y * w, w]) @ x
        squares = w.square() @ x_squares
        slope = products / squares
        # of y - bz, whose sum of squares is sum y^2 - b sum zy
        variance = (y_squares - slope * products) / rows - ((total - slope * z_total) / rows).square()
        evidence = slope.square() * squares / (h * variance)
        keep = similar & apart & (rows >= rule.min_rows) & (slope < 0) & evidence.isfinite()
        parts.append([torch.where(keep, value, 0.0) for value in (slope, evidence, rows)])
    slope, evidence, rows = (torch.stack(values) for values in zip(*parts))
    return Relations(x, slope, evidence, rows.long())


def shrunk_coefficients(slope: Tensor, evidence: Tensor) -> Tensor:  # (H, J) each
    """Coefficients of the deviations: slopes, weighted by their evidence."""
    total = torch.stack([f.sum() for f in evidence]).clamp(min=torch.finfo(evidence.dtype).tiny)
    return slope * evidence / total[:, None] * evidence / (evidence + PAIR_PRIOR)


def fit_season(waves: Tensor, outcome: Tensor, sigma: Tensor, h: int, min_rows: int) -> Tensor:  # (4,)
    """Coefficients of the waves (W, 4), drawn toward zero; zero with fewer than `min_rows` outcomes."""
    valid = (outcome / sigma).isfinite()
    if int(valid.sum()) < min_rows:
        return waves.new_zeros(waves.shape[1])
    y, g = (outcome / sigma)[valid], waves[valid] / sigma[valid, None]
    # sums of products: the bits of a solver by factorization depend on where the rows lie in memory
    moments, products = (g[:, :, None] * g[:, None]).sum(0), (g * y[:, None]).sum(0)
    beta = torch.linalg.solve(moments, products)
    f = (g @ beta).square().sum() / len(beta) / (h * (y - g @ beta).var(correction=0))
    shrunk: Tensor = beta * f / (f + SEASON_PRIOR)
    return shrunk
