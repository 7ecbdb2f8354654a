"""Maximum likelihood of GARCH(1,1) and GJR-GARCH for many series in one call."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from torchcommodity.opkit.arguments import check_panel, raise_invalid
from torchcommodity.ops._volatility import interior_point
from torchcommodity.ops._volatility.garch_score import operator as garch_score

REASONS = (
    "converged",
    "the turns were exhausted: the parameters are the best that were found",
    "no further step raised the likelihood: the parameters are the best that were found",
    "no return is finite",
    "too few finite returns: at least 10 for each parameter",
    "the returns do not vary",
    "a return is infinite",
)
NO_RETURN, TOO_FEW, CONSTANT, INFINITE = 3, 4, 5, 6


@dataclass(frozen=True)
class GarchFit:
    """Of each series (..., N): its parameters, as `garch_variance` takes them, and how they were found."""

    omega: Tensor
    alpha: Tensor
    beta: Tensor
    gamma: Tensor  # 0 if not asymmetric
    nu: Tensor  # degrees of freedom of Student's t; infinity for the normal distribution
    initial: Tensor  # h of the first return
    loglikelihood: Tensor
    converged: Tensor  # bool
    reason: Tensor  # int64, an index of `REASONS`
    iterations: Tensor  # int64
    standard_error: dict[str, Tensor]  # of each parameter that was estimated

    def words(self) -> list[str]:
        """The reason of each series in words, the last axis fastest."""
        return [REASONS[i] for i in self.reason.flatten().tolist()]


def garch_fit(
    returns: Tensor,  # (..., T, N)
    *,
    asymmetric: bool = False,
    distribution: str = "normal",
) -> GarchFit:
    """Fit r_t = sqrt(h_t) z_t with the variance of `garch_variance` to each series, by maximum likelihood.

    The model is arch's with mean="Zero": subtract a mean before, if there is one. Its start is arch's, too: before the
    first return both variance and squared return are the exponentially weighted mean (0.94) of the first 75 squared
    returns. Bounds are arch's: omega > 0, alpha >= 0, alpha + gamma >= 0, beta >= 0, alpha + gamma/2 + beta <= 1, and
    2.05 <= nu <= 500. Newton's method with analytic second derivatives starts at the best point of a small grid.

    Args:
        returns: log-returns per step in any unit: scale is taken out, and given back to omega. NaN is a missing return:
            those before the first return are not there; between others it counts as its expectation in the variance
            (see `garch_variance`) and not at all in the likelihood.
        asymmetric: with `gamma` for falling returns (GJR-GARCH).
        distribution: of z_t, "normal" or "t": Student's t of unit variance with `nu` degrees of freedom.

    Returns:
        `GarchFit`, in float64. A series that cannot be fitted has NaN parameters, converged=False and a reason; the
        others are what they are without it, bit for bit. Standard errors are robust (Bollerslev-Wooldridge sandwich of
        second derivatives and scores, as arch's default); NaN where second derivatives are not negative definite, as
        may be at a bound. Not differentiable.

    Raises:
        ValueError, TypeError: `returns` is no floating-point panel, or `distribution` is neither of the two.

    Devices: CPU and CUDA; elsewhere the reference.

    References:
        Bollerslev, Wooldridge (1992). Quasi-maximum likelihood estimation and inference in dynamic models with
        time-varying covariances. Econometric Reviews 11(2). doi:10.1080/07474939208800229

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> noise = torch.randn(500, 2, generator=torch.Generator().manual_seed(0))
        >>> fit = ops.garch_fit(torch.cat([noise, torch.full((500, 1), 0.5)], 1))
        >>> fit.words()
        ['converged', 'converged', 'the returns do not vary']
    """
    check_panel("garch_fit", returns=returns)
    if distribution not in ("normal", "t"):
        raise_invalid("garch_fit", 'distribution must be "normal" or "t"', distribution=distribution)
    batch, assets = returns.shape[:-2], returns.shape[-1]
    panel = returns.detach().double().movedim(-2, 0).reshape(returns.shape[-2], math.prod(batch) * assets)
    model = _Model(asymmetric, distribution == "t")
    fit = _fit(panel, model)
    shaped = {name: x.reshape(*batch, assets) for name, x in fit.items()}
    errors = {name: shaped.pop(f"error_{name}") for name in model.names}
    return GarchFit(**shaped, standard_error=errors)


@dataclass(frozen=True)
class _Model:
    asymmetric: bool
    tail: bool

    @property
    def names(self) -> tuple[str, ...]:
        return ("omega", "alpha", *("gamma",) * self.asymmetric, "beta", *("nu",) * self.tail)

    def bounds(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """A and b of A x >= b, for x = omega, alpha (of rising, of falling returns), beta, 1 / nu at unit scale."""
        arms, size = 1 + self.asymmetric, len(self.names)
        rows = [[1.0] + [0.0] * (size - 1), [-1.0] + [0.0] * (size - 1)]
        rows += [[0.0] * i + [1.0] + [0.0] * (size - 1 - i) for i in range(1, arms + 2)]
        rows.append([0.0, *[-1.0 / arms] * arms, -1.0, *[0.0] * self.tail])
        limits = [1e-8, -10.0, *[0.0] * (arms + 1), -1.0]
        if self.asymmetric:
            rows.append([0.0, -1.0] + [0.0] * (size - 2))
            limits.append(-1.0)
        if self.tail:
            rows += [[0.0] * (size - 1) + [side] for side in (1.0, -1.0)]
            limits += [1 / 500, -1 / 2.05]
        return like.new_tensor(rows), like.new_tensor(limits)

    def point(self, alpha: float, persistence: float, falls: float = 1) -> list[float]:
        """Of unit variance; `falls` is what falling returns weigh, where 1 is as much as rising ones."""
        arms = [alpha] if not self.asymmetric else [alpha * (2 - falls), alpha * falls]
        return [1 - persistence, *arms, persistence - alpha, *[1 / 8] * self.tail]

    def starts(self) -> list[list[float]]:
        """Constant variance, then a small grid of where to climb from."""
        pairs = [(0.05, 0.9), (0.04, 0.98), (0.12, 0.97), (0.1, 0.6)]
        return [
            self.point(0, 0),
            *(self.point(*pair, side) for pair in pairs for side in (1, 1.8)[: 1 + self.asymmetric]),
        ]

    def far_starts(self) -> list[tuple[float, list[float]]]:
        """Where else an optimum was met: a short memory, next to none, a long one. Each with the gain of log-likelihood
        over constant variance below which a series is sent there, for a strong one has one optimum."""
        return [(30, self.point(0.25, 0.75)), (12, self.point(0.03, 0.25)), (12, self.point(0.01, 0.995))]

    def parameters(self, x: Tensor) -> Tensor:
        """(4, n) for `garch_score`."""
        omega, rising, falling, beta = x[:, 0], x[:, 1], x[:, 1 + self.asymmetric], x[:, 2 + self.asymmetric]
        return torch.stack([omega, rising, falling, beta])

    def statistics(
        self, panel: Tensor, count: Tensor, backcast: Tensor, x: Tensor, derivatives: bool = True
    ) -> list[Tensor]:
        """Log-likelihood, gradient, minus the second derivatives, sum of squared scores; by nu, not yet by 1 / nu."""
        size, tail, constant = len(self.names), None, torch.full_like(x[:, 0], -0.5 * math.log(math.tau))
        if self.tail:
            nu = 1 / x[:, -1]
            constant, slope, curve = _normalizing(nu)
            tail = torch.stack([nu, slope])
        y = garch_score(panel, self.parameters(x), backcast, tail, self.asymmetric, derivatives).T
        pairs = size * (size + 1) // 2
        value, gradient, information, outer = y.split([1, size, pairs, pairs], 1)
        information, outer = (_square(triangle, size) for triangle in (information, outer))
        if self.tail:
            information[:, -1, -1] -= count * curve
        return [value.squeeze(1) + count * constant, gradient, information, outer]


def _normalizing(nu: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """ln of the factor that makes a density of (1 + z^2 / (nu - 2))^(-(nu + 1) / 2), and its derivatives by nu."""
    upper, lower, rest = (nu + 1) / 2, nu / 2, nu - 2
    constant = upper.lgamma() - lower.lgamma() - (math.pi * rest).log() / 2
    slope = (upper.digamma() - lower.digamma() - 1 / rest) / 2
    return constant, slope, (upper.polygamma(1) - lower.polygamma(1)) / 4 + 1 / (2 * rest**2)


def _square(triangle: Tensor, size: int) -> Tensor:
    """(n, size, size) from the columns of upper triangles (n, pairs)."""
    places = [[max(i, j) * (max(i, j) + 1) // 2 + min(i, j) for j in range(size)] for i in range(size)]
    return triangle[:, torch.tensor(places, device=triangle.device)]


def _fit(returns: Tensor, model: _Model) -> dict[str, Tensor]:
    """Of a panel (T, n), all that `GarchFit` holds, each (n,)."""
    panel, scale, backcast, count, reason = _prepared(returns, len(model.names))
    fitted = (reason < 0).nonzero().squeeze(1)
    found = _climb(panel[:, fitted], backcast[fitted], count[fitted], model)
    found["omega"], found["error_omega"] = (found[x] * scale[fitted] ** 2 for x in ("omega", "error_omega"))
    found["initial"] = found["initial"] * scale[fitted] ** 2
    found["loglikelihood"] = found["loglikelihood"] - count[fitted] * scale[fitted].log()
    whole = {name: torch.full_like(scale, torch.nan).index_copy(0, fitted, x) for name, x in found.items()}
    reason = torch.where(reason < 0, whole.pop("status").nan_to_num(0).long(), reason)
    iterations = whole.pop("iterations").nan_to_num(0).long()
    return whole | {"reason": reason, "converged": reason == 0, "iterations": iterations}


def _prepared(returns: Tensor, size: int) -> tuple[Tensor, ...]:
    """The panel at unit scale, each series from its first return on; scale, backcast, count; why not to fit, or -1."""
    missing = returns.isnan()
    holes = bool(missing.any())  # each look at a whole panel takes time
    if holes:
        returns, missing = _from_first(returns, missing)
    count = len(returns) - missing.sum(0)
    filled = torch.where(missing, 0, returns) if holes else returns
    scale = (filled.square().sum(0) / count.clamp(min=1)).sqrt()
    reason = torch.where(count < 10 * size, TOO_FEW, -1)
    if len(returns):
        low, high = (torch.where(missing, returns[0], returns) if holes else returns).aminmax(dim=0)
        reason = torch.where((reason < 0) & (low == high), CONSTANT, reason)
    reason = torch.where(scale.isinf(), INFINITE, reason).masked_fill(count == 0, NO_RETURN)
    weights = 0.94 ** torch.arange(len(returns[:75]), dtype=scale.dtype, device=scale.device).unsqueeze(1)
    weights = weights * ~missing[:75]
    unit = returns / torch.where(scale > 0, scale, 1)
    backcast = (weights * filled[:75].square()).sum(0) / weights.sum(0) / scale**2
    return unit, scale, backcast, count, reason


def _from_first(returns: Tensor, missing: Tensor) -> tuple[Tensor, Tensor]:
    """What was before the first return is not there; as many rows are missing at the end."""
    steps = len(returns)
    rows = torch.arange(steps, device=returns.device).unsqueeze(1) + missing.int().argmin(0)
    returns = torch.where(rows < steps, returns.gather(0, rows.clamp(max=steps - 1)), torch.nan)
    return returns, returns.isnan()


def _climb(panel: Tensor, backcast: Tensor, count: Tensor, model: _Model) -> dict[str, Tensor]:
    """The optimum of each column of a panel at unit scale."""
    columns, shown = torch.arange(panel.shape[1], device=panel.device), panel

    def objective(x: Tensor, which: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        nonlocal columns, shown
        if not torch.equal(which, columns):  # solved series leave the panel
            columns, shown = which, panel[:, which]
        value, gradient, hessian, _ = model.statistics(shown, count[which], backcast[which], x)
        if model.tail:
            gradient, hessian = _by_inverse(gradient, hessian, 1 / x[:, -1])
        return -value, -gradient, hessian

    bounds, limits = model.bounds(panel)
    x = panel.new_tensor(model.starts())
    values = _likelihoods(panel, backcast, count, model, x)
    solved = interior_point.minimize(objective, x[values[1:].argmax(0) + 1], bounds, limits)
    gain = -solved.value - values[0]
    for limit, start in model.far_starts():
        weak, x = (gain < limit).nonzero().squeeze(1), panel.new_tensor(start)
        solved = interior_point.better(solved, interior_point.minimize(objective, x, bounds, limits, which=weak))
    x = solved.x
    omega, rising, falling, beta = model.parameters(x)
    nu = 1 / x[:, -1] if model.tail else torch.full_like(omega, torch.inf)
    first = omega + ((rising + falling) / 2 + beta) * backcast
    found = {"omega": omega, "alpha": rising, "beta": beta, "gamma": falling - rising, "nu": nu, "initial": first}
    errors = _standard_errors(model, count, *model.statistics(panel, count, backcast, x)[1:])
    state = {"status": solved.status.to(x), "iterations": solved.iterations.to(x), "loglikelihood": -solved.value}
    return found | state | {f"error_{name}": error for name, error in zip(model.names, errors)}


def _likelihoods(panel: Tensor, backcast: Tensor, count: Tensor, model: _Model, points: Tensor) -> Tensor:
    """(points, n)"""
    every = [x.expand(panel.shape[1], -1) for x in points]
    return torch.stack([model.statistics(panel, count, backcast, x, derivatives=False)[0] for x in every])


def _by_inverse(gradient: Tensor, information: Tensor, nu: Tensor) -> tuple[Tensor, Tensor]:
    """Derivatives by 1 / nu for those by nu: the likelihood is close to quadratic in it, and nu may go far."""
    factor = torch.ones_like(gradient)
    factor[:, -1] = -(nu**2)
    information = information * factor.unsqueeze(1) * factor.unsqueeze(2)
    information[:, -1, -1] -= 2 * gradient[:, -1] * nu**3
    return gradient * factor, information


def _standard_errors(model: _Model, count: Tensor, gradient: Tensor, information: Tensor, outer: Tensor) -> Tensor:
    """Of `model.names`: the sandwich H^-1 S H^-1, S the covariance of scores."""
    n = count.to(gradient)[:, None, None]
    spread = (outer - gradient.unsqueeze(1) * gradient.unsqueeze(2) / n) * (n / (n - 1))
    inverse, failed = torch.linalg.inv_ex(information)
    covariance = inverse @ spread @ inverse
    if model.asymmetric:  # gamma is the difference of the two alphas
        change = torch.eye(len(model.names), dtype=gradient.dtype, device=gradient.device)
        change[2, 1] = -1
        covariance = change @ covariance @ change.T
    variances = covariance.diagonal(dim1=1, dim2=2).masked_fill(failed.unsqueeze(1) > 0, torch.nan)
    errors: Tensor = variances.sqrt().T
    return errors
