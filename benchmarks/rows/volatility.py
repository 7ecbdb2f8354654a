"""GARCH, EGARCH and the Hamilton filter, against arch and statsmodels."""

import warnings

import numpy as np
import torch
from row import Call, Row, columns, uniform
from torch import Tensor

from torchcommodity import ops


def arch_variance(panel: Tensor) -> Call:
    from arch.univariate.recursions import garch_recursion

    series = columns(panel)
    squares, signs, variances = series**2, np.sign(series), np.empty_like(series)
    parameters, bounds = np.array([0.05, 0.05, 0.9]), np.tile([0.0, 1e9], (series.shape[1], 1))

    def call() -> object:
        for square, sign, variance in zip(squares, signs, variances):
            garch_recursion(parameters, square, sign, variance, 1, 0, 1, len(square), 1.0, bounds)
        return variances

    return call


def arch_egarch(panel: Tensor) -> Call:
    from arch.univariate.recursions import egarch_recursion

    series = columns(panel)
    variances, scratch = np.empty_like(series), np.empty((3, series.shape[1]))
    parameters, bounds = np.array([0.0, 0.1, -0.05, 0.9]), np.tile([0.0, 1e9], (series.shape[1], 1))

    def call() -> object:
        for r, variance in zip(series, variances):
            egarch_recursion(parameters, r, variance, 1, 1, 1, len(r), 0.0, bounds, *scratch)
        return variances

    return call


def statsmodels_filter(panel: Tensor) -> Call:
    from statsmodels.tsa.regime_switching.markov_regression import MarkovRegression

    models = [MarkovRegression(x, k_regimes=2, switching_variance=True) for x in columns(panel)]
    parameters = np.array([0.95, 0.1, 0.0, 0.0, 0.5, 2.0])
    return lambda: [model.filter(parameters) for model in models]


def hamilton_filter(panel: Tensor) -> ops.HamiltonFilter:
    transition = panel.new_tensor([[0.95, 0.05], [0.1, 0.9]]).unsqueeze(-1)
    return ops.hamilton_filter(panel, panel.new_zeros(2, 1), panel.new_tensor([[0.5], [2.0]]), transition)


def simulated() -> tuple[Tensor, ...]:
    """Simulated GARCH(1,1) returns of 1000 series with different parameters; not prices."""
    generator = torch.Generator().manual_seed(0)
    alpha, uniform = torch.rand(2, 1000, dtype=torch.double, generator=generator)
    alpha = 0.03 + 0.1 * alpha
    beta = 0.97 - alpha - 0.1 * uniform
    h, rows = torch.ones(1000, dtype=torch.double), []
    for _ in range(2500):
        rows.append(h.sqrt() * torch.randn(1000, dtype=torch.double, generator=generator))
        h = (1 - alpha - beta) + alpha * rows[-1] ** 2 + beta * h
    return (torch.stack(rows),)


def arch_fit(panel: Tensor) -> Call:
    from arch import arch_model

    def call() -> object:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [arch_model(x, mean="Zero", rescale=False).fit(disp="off") for x in columns(panel)]

    return call


ROWS = (
    Row(
        "garch_variance",
        "(2500, 1000)",
        uniform(2500, 1000),
        lambda x: ops.garch_variance(x, omega=0.05, alpha=0.05, beta=0.9),
        {"arch recursion by column": arch_variance},
        goal=8,
    ),
    Row(
        "egarch_variance",
        "(2500, 1000)",
        uniform(2500, 1000),
        lambda x: ops.egarch_variance(x, omega=0.0, alpha=0.1, beta=0.9, gamma=-0.05),
        {"arch recursion by column": arch_egarch},
    ),
    Row(
        "hamilton_filter",
        "2 regimes, (2500, 50)",
        uniform(2500, 50),
        hamilton_filter,
        {"statsmodels filter by column": statsmodels_filter},
    ),
    Row(
        "garch_score",
        "normal, (2500, 1000) f64",
        simulated,
        lambda x: ops.garch_fit(x),
        {"arch fit by column": arch_fit},
        goal=40,
        name="garch_fit",
    ),
)
