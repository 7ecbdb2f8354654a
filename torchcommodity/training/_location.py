"""Fit what is known of where prices go, in closed form: relations of prices, and the season.

Only outcomes of the training rows enter. Everything is divided by the slow volatility over the horizon, so that calm
and volatile periods weigh alike, and each coefficient is drawn toward zero by its evidence F, the share of the variance
of an outcome that it explains over that of a mean of as many independent outcomes as the rows hold.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from torchcommodity.models import Location, ModelInputs, known_log_prices, seasonal_waves
from torchcommodity.ops import ewm_mean
from torchcommodity.training._basis import fit_basis

PAIR_PRIOR = 12.0  # F at which half of a reversion is expected
SEASON_PRIOR = 6.0  # likewise of a season
MAX_PAIRS = 64  # of a symbol, those of the strongest evidence: among copies of a price further ones say nothing new
BLOCK = 256  # rows of all goods that stay in the cache of a processor


class OwnHistory(NamedTuple):
    """The rows on which a symbol has a price, and all goods on them: the last price, which stands for up to 5 rows."""

    rows: Tensor  # (W,) int64
    log: Tensor  # (W,) its log price
    others: Tensor  # (W, J) log prices of all goods, zero where not known
    known: Tensor  # (W, J) 1 where known, 0 elsewhere


class Relation(NamedTuple):
    """Evidence of a symbol and the goods of the same moves, at one horizon: zero where it does not revert."""

    slope: Tensor  # (J,) b < 0
    evidence: Tensor  # (J,) F
    rows: Tensor  # (J,) int64


@torch.no_grad()
def fit_location(location: Location, inputs: ModelInputs, target: Tensor, variance: Tensor) -> Tensor:  # (T, H, N)
    """Fit in place on all rows of `inputs`.

    For a symbol n, another good j and a horizon h, with y, z and c the outcome of n, the deviation x_nj and the change
    of ln P_j until the outcome of n, each over sigma_h = sqrt(h v): j is kept if sum yc / sqrt(sum y^2 sum c^2) reaches
    the rule's `comovement`, the rows its `min_rows`, and b = sum zy / sum z^2 is negative; of more than 64 goods, those
    of the largest sum of F over the horizons. With F = b^2 sum z^2 / (h Var(y - bz)), the coefficient of x_nj is
    b F / sum F * F / (F + 12).

    The season is least squares of what is left of the outcomes on the waves, times F / (F + 6). Futures curves of spot
    prices take the place of both on the rows on which they are known; see `fit_basis`.

    Args:
        location: the module; its pairs and season are overwritten.
        inputs: training rows only.
        target: (T, H, N) outcomes less the expected effect of rolls and averaging; NaN is ignored.
        variance: (T, N) slow variance per row; NaN during warm-up.

    Returns:
        m, as `Location` gives it after the fit; zero on the rows on which a symbol has no price.
    """
    horizons = location.config.horizons
    carried = CarriedPrices(inputs, location.rule.max_age)
    pairs, coefficients, rows = [], [], []
    season, expected = torch.zeros_like(location.season), torch.zeros_like(target)
    for n in range(location.assets):
        own = carried.own_history(n)
        sigma = [(h * variance[own.rows, n]).sqrt() for h in horizons]
        outcomes = [target[own.rows, i, n] for i in range(len(horizons))]
        similar = torch.stack([moves_alike(location, own, n, y, s, h) for y, s, h in zip(outcomes, sigma, horizons)])
        others = similar.any(0).nonzero()[:, 0]
        x, known = deviations(location, own, others)
        relations = [
            fit_relation(location, x, known, y, s, h, similar[i, others])
            for i, (y, s, h) in enumerate(zip(outcomes, sigma, horizons))
        ]
        evidence = torch.stack([relation.evidence for relation in relations])
        weak = evidence.sum(0).argsort(descending=True, stable=True)[MAX_PAIRS:]
        for relation in relations:
            relation.slope[weak], relation.evidence[weak] = 0.0, 0.0
        weights = torch.stack([shrunk_coefficients(relation) for relation in relations])  # (H, J')
        m = torch.stack([x @ w for w in weights], 1)  # (W, H), each horizon with the bits that it has alone
        if inputs.days is not None:
            waves = seasonal_waves(inputs.days[own.rows].to(variance))
            for i, (y, s, h) in enumerate(zip(outcomes, sigma, horizons)):
                season[i, n] = fit_season(waves, y - m[:, i], s, h, location.rule.min_rows)
                m[:, i] += waves @ season[i, n]
        expected[own.rows, :, n] = m
        nonzero = (weights != 0).any(0)
        pairs.append(torch.stack([torch.full_like(others, n), others], 1)[nonzero])
        coefficients.append(weights[:, nonzero])
        rows.append(torch.stack([relation.rows for relation in relations]).amax(0)[nonzero])
    location.set_pairs(torch.cat(pairs), torch.cat(coefficients, 1), torch.cat(rows))
    location.season.copy_(season)
    expected = location.limit(expected, variance)
    return expected if location.basis is None else fit_basis(location.basis, inputs, target, variance, expected)


class CarriedPrices:
    """The last price of every good up to each row, as long as it is not too old in the rows of a symbol."""

    def __init__(self, inputs: ModelInputs, max_age: int) -> None:
        self.max_age = max_age
        log, self.fresh = known_log_prices(inputs.prices, inputs.references)
        numbers = torch.arange(len(log))[:, None].expand_as(log)
        self.source = torch.where(self.fresh, numbers, -1).cummax(0).values  # row of the last price, -1 before it
        self.log = log.gather(0, self.source.clamp(min=0))

    def own_history(self, n: int) -> OwnHistory:
        rows = self.fresh[:, n].nonzero()[:, 0]
        oldest = torch.cat([rows.new_zeros(self.max_age), rows])[: len(rows), None]  # row of a price of that age
        known = (self.source[rows] >= oldest).to(self.log)
        log = self.log[rows]
        return OwnHistory(rows, log[:, n].clone(), log.mul_(known), known)


def moves_alike(location: Location, own: OwnHistory, n: int, outcome: Tensor, sigma: Tensor, h: int) -> Tensor:  # (J,)
    """Goods whose changes over the horizon are correlated with the outcomes of symbol n, on enough rows."""
    y, valid = standardized(outcome, sigma)
    w = torch.where(valid, 1 / sigma, 0.0)
    per_row = torch.stack([y.square(), valid.to(y)])
    sums = own.others.new_zeros(4, own.others.shape[1])  # of yc, c^2, y^2 and rows
    for start in range(0, len(y) - h, BLOCK):  # all goods at once would be read from main memory for each operation
        now = slice(start, min(start + BLOCK, len(y) - h))
        then = slice(now.start + h, now.stop + h)
        known = own.known[then] * own.known[now]
        c = (own.others[then] - own.others[now]).mul_(known).mul_(w[now, None])
        sums[0] += y[now] @ c
        sums[1] += c.square_().sum(0)
        sums[2:] += per_row[:, now] @ known
    alike = (sums[0] / (sums[1] * sums[2]).sqrt() >= location.rule.comovement) & (sums[3] >= location.rule.min_rows)
    alike[n] = False
    return alike


def standardized(outcome: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:  # (W,) each
    """Outcomes over their volatility, zero where one of them is not known, and whether both are."""
    y = outcome / sigma
    return torch.where(y.isfinite(), y, 0.0), y.isfinite()


def deviations(location: Location, own: OwnHistory, others: Tensor) -> tuple[Tensor, Tensor]:  # (W, J') each
    """x of the symbol against some other goods, as in `Location.deviations`, zero where not known; 1 where known."""
    ratio = torch.where(own.known[:, others] > 0, own.log[:, None] - own.others[:, others], torch.nan)
    rule = location.rule
    x = ratio - ewm_mean(ratio, halflife=rule.halflife, min_periods=rule.min_values, ignore_na=True)
    return torch.where(x.isfinite(), x, 0.0), x.isfinite().to(x)


def fit_relation(
    location: Location, x: Tensor, known: Tensor, outcome: Tensor, sigma: Tensor, h: int, similar: Tensor
) -> Relation:
    """Reversion of the symbol to each of some goods; `x`, `known` (W, J') of `deviations`."""
    y, valid = standardized(outcome, sigma)
    z = x * torch.where(valid, 1 / sigma, 0.0)[:, None]
    rows, total, y_squares = torch.stack([valid.to(y), y, y.square()]) @ known
    products, z_total = torch.stack([y, torch.ones_like(y)]) @ z
    squares = z.square_().sum(0)
    slope = products / squares
    # of y - bz, whose sum of squares is sum y^2 - b sum zy
    variance = (y_squares - slope * products) / rows - ((total - slope * z_total) / rows).square()
    evidence = slope.square() * squares / (h * variance)
    keep = similar & (rows >= location.rule.min_rows) & (slope < 0) & evidence.isfinite()
    return Relation(torch.where(keep, slope, 0.0), torch.where(keep, evidence, 0.0), torch.where(keep, rows, 0).long())


def shrunk_coefficients(relation: Relation) -> Tensor:  # (J',)
    """Coefficients of the deviations: slopes, weighted by their evidence."""
    f = relation.evidence
    return relation.slope * f / f.sum().clamp(min=torch.finfo(f.dtype).tiny) * f / (f + PAIR_PRIOR)


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
