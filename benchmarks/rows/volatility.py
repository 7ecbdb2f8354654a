"""Volatility."""

import numpy as np
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


ROWS = (
    Row(
        "garch_variance",
        "(2500, 1000)",
        uniform(2500, 1000),
        lambda x: ops.garch_variance(x, omega=0.05, alpha=0.05, beta=0.9),
        {"arch recursion by column": arch_variance},
        target=8,
    ),
)
