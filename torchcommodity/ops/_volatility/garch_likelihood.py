"""The likelihood that `garch_fit` maximizes: parameter vector, bounds, starting points, value and derivatives."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from torchcommodity.ops._volatility.garch_score import operator as garch_score


@dataclass(frozen=True)
class Likelihood:
    """Log-likelihood of GARCH(1,1) at unit scale, for parameter vectors x (n, P) of n series.

    x is omega, alpha (of positive and of negative returns if asymmetric), beta and, for Student's t, 1 / nu.
    """

    asymmetric: bool
    student: bool

    @property
    def names(self) -> tuple[str, ...]:
        return ("omega", "alpha", *("gamma",) * self.asymmetric, "beta", *("nu",) * self.student)

    def bounds(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """A (M, P) and b (M,) of the constraints A x >= b."""
        alphas, size = 1 + self.asymmetric, len(self.names)
        rows = [[1.0] + [0.0] * (size - 1), [-1.0] + [0.0] * (size - 1)]
        rows += [[0.0] * i + [1.0] + [0.0] * (size - 1 - i) for i in range(1, alphas + 2)]
        rows.append([0.0, *[-1.0 / alphas] * alphas, -1.0, *[0.0] * self.student])
        limits = [1e-8, -10.0, *[0.0] * (alphas + 1), -1.0]
        if self.asymmetric:
            rows.append([0.0, -1.0] + [0.0] * (size - 2))
            limits.append(-1.0)
        if self.student:
            rows += [[0.0] * (size - 1) + [sign] for sign in (1.0, -1.0)]
            limits += [1 / 500, -1 / 2.05]
        return like.new_tensor(rows), like.new_tensor(limits)

    def point(self, alpha: float, persistence: float, asymmetry: float = 1) -> list[float]:
        """x with unit stationary variance; `asymmetry` is the weight of negative returns relative to `alpha`."""
        alphas = [alpha] if not self.asymmetric else [alpha * (2 - asymmetry), alpha * asymmetry]
        return [1 - persistence, *alphas, persistence - alpha, *[1 / 8] * self.student]

    def starts(self) -> list[list[float]]:
        """Constant variance first, then a small grid of starting points."""
        pairs = [(0.05, 0.9), (0.04, 0.98), (0.12, 0.97), (0.1, 0.6)]
        return [
            self.point(0, 0),
            *(self.point(*pair, asymmetry) for pair in pairs for asymmetry in (1, 1.8)[: 1 + self.asymmetric]),
        ]

    def fallback_starts(self) -> list[tuple[float, list[float]]]:
        """More starting points, (maximum gain, x): for series whose log-likelihood gains less over constant variance.

        Weak GARCH effects can have a second optimum: with short memory, almost none, or long memory.
        """
        return [(30, self.point(0.25, 0.75)), (12, self.point(0.03, 0.25)), (12, self.point(0.01, 0.995))]

    def parameters(self, x: Tensor) -> Tensor:
        """(4, n) for `garch_score`."""
        alpha, alpha_negative, beta = x[:, 1], x[:, 1 + self.asymmetric], x[:, 2 + self.asymmetric]
        return torch.stack([x[:, 0], alpha, alpha_negative, beta])

    def value(self, panel: Tensor, count: Tensor, backcast: Tensor, x: Tensor) -> Tensor:
        """Log-likelihood (n,) of a panel (T, n) with `count` returns in each column."""
        return self.statistics(panel, count, backcast, x, derivatives=False)[0]

    def statistics(
        self, panel: Tensor, count: Tensor, backcast: Tensor, x: Tensor, derivatives: bool = True
    ) -> list[Tensor]:
        """Log-likelihood (n,), gradient (n, P), negative Hessian (n, P, P) and sum of squared scores (n, P, P).

        The derivatives are with respect to nu, not 1 / nu.
        """
        size, tail, constant = len(self.names), None, torch.full_like(x[:, 0], -0.5 * math.log(math.tau))
        if self.student:
            nu = 1 / x[:, -1]
            constant, slope, curvature = _student_constant(nu)
            tail = torch.stack([nu, slope])
        y = garch_score(panel, self.parameters(x), backcast, tail, self.asymmetric, derivatives).T
        pairs = size * (size + 1) // 2
        value, gradient, information, outer = y.split([1, size, pairs, pairs], 1)
        # upper triangles, stored by columns
        index = [[max(i, j) * (max(i, j) + 1) // 2 + min(i, j) for j in range(size)] for i in range(size)]
        information, outer = (torch.stack([x[:, i] for row in index for i in row], 1) for x in (information, outer))
        information, outer = (x.unflatten(1, (size, size)) for x in (information, outer))
        if self.student:
            information[:, -1, -1] -= count * curvature
        return [value.squeeze(1) + count * constant, gradient, information, outer]


def derivatives_by_inverse_nu(gradient: Tensor, information: Tensor, nu: Tensor) -> tuple[Tensor, Tensor]:
    """Convert derivatives by nu to derivatives by 1 / nu, in which the likelihood is nearly quadratic."""
    factor = torch.ones_like(gradient)
    factor[:, -1] = -(nu**2)
    information = information * factor.unsqueeze(1) * factor.unsqueeze(2)
    information[:, -1, -1] -= 2 * gradient[:, -1] * nu**3
    return gradient * factor, information


def _student_constant(nu: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """ln of the constant that normalizes (1 + z^2 / (nu - 2))^(-(nu + 1) / 2), and its two derivatives by nu."""
    upper, lower, excess = (nu + 1) / 2, nu / 2, nu - 2
    constant = upper.lgamma() - lower.lgamma() - (math.pi * excess).log() / 2
    slope = (upper.digamma() - lower.digamma() - 1 / excess) / 2
    return constant, slope, (upper.polygamma(1) - lower.polygamma(1)) / 4 + 1 / (2 * excess**2)
