"""Positions of one volatility, judged by the covariance that is known when they are bought."""

import torch
from torch import Tensor, nn


class VolatilityTarget(nn.Module):
    """Scale the weights of every row to one volatility a year: w k, k = min(target / sigma, leverage / sum |w|).

    sigma^2 = rows_a_year w' C w is the variance that the covariance expects. A row without positions stays one.

    Args:
        target: volatility a year, 0.10 for 10 %.
        leverage: most that the absolute weights may sum to.
        rows_a_year: of the panel.

    Shape:
        weights (..., T, N) and covariance per row (..., T, N, N), NaN where two assets were never seen together, which
        counts as 0 -> weights (..., T, N). Causal, row by row. Differentiable in both, with finite gradients at
        positions of zero.

    References:
        Moreira, Muir (2017). Volatility-managed portfolios. J. Finance 72(4). doi:10.1111/jofi.12513.

    Example:
        >>> import torch
        >>> from torchcommodity import nn
        >>> covariance = torch.diag(torch.tensor([0.01, 0.02]) ** 2)  # 1 and 2 % a day
        >>> nn.VolatilityTarget(0.16, rows_a_year=256)(torch.tensor([[0.5, 0.0], [0.0, 0.0]]), covariance)
        tensor([[1., 0.],
                [0., 0.]])
    """

    def __init__(self, target: float = 0.10, *, leverage: float = 3.0, rows_a_year: int = 252) -> None:
        super().__init__()
        if not target > 0 or not leverage > 0 or rows_a_year < 1:
            got = f"{target}, {leverage}, {rows_a_year}"
            raise ValueError(f"VolatilityTarget: target, leverage and rows_a_year must be > 0; got {got}")
        self.target, self.leverage, self.rows_a_year = target, leverage, rows_a_year

    def forward(self, weights: Tensor, covariance: Tensor) -> Tensor:  # (..., T, N), (..., T, N, N) -> (..., T, N)
        if covariance.shape[-2:] != weights.shape[-1:] * 2:
            shapes = f"{tuple(weights.shape)}, {tuple(covariance.shape)}"
            raise ValueError(f"VolatilityTarget: weights (..., T, N) need a covariance (..., T, N, N); got {shapes}")
        joint = torch.where(covariance.isnan(), 0.0, covariance)
        # an explicit sum, not a matrix product: its bits do not depend on the number of rows
        variance = (joint * weights.unsqueeze(-1) * weights.unsqueeze(-2)).sum((-2, -1)) * self.rows_a_year
        held, moving = weights.abs().sum(-1), variance > 0
        to_target = self.target / torch.where(moving, variance, 1.0).sqrt()
        to_limit = self.leverage / torch.where(held > 0, held, 1.0)
        scale = torch.where(moving, torch.minimum(to_target, to_limit), 0.0)
        return weights * scale.unsqueeze(-1)
