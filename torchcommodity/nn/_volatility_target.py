"""Volatility targeting of portfolio weights."""

import torch
from torch import Tensor, nn

from torch_opkit.arguments import raise_invalid


class VolatilityTarget(nn.Module):
    """Scale the weights of every row to a target volatility: k w, k = min(target / sigma, leverage / sum |w|).

    sigma^2 = rows_per_year w' C w is the annualized ex-ante variance. Zero weights stay zero.

    Args:
        target: annualized volatility, 0.10 for 10 %.
        leverage: upper bound of the sum of absolute weights.
        rows_per_year: 252 for trading days.

    Shape:
        weights (..., T, N) and covariance per row (..., T, N, N), where NaN (two assets without a common return) counts
        as 0 -> weights (..., T, N). Causal, row by row. Differentiable in both, with finite gradients at zero weights.

    Raises:
        ValueError: a setting is not positive, or the shapes do not match.

    References:
        Moreira, Muir (2017). Volatility-managed portfolios. J. Finance 72(4). doi:10.1111/jofi.12513.

    Example:
        >>> import torch
        >>> from torchcommodity import nn
        >>> covariance = torch.diag(torch.tensor([0.01, 0.02]) ** 2)  # 1 % and 2 % per day
        >>> nn.VolatilityTarget(0.16, rows_per_year=256)(torch.tensor([[0.5, 0.0], [0.0, 0.0]]), covariance)
        tensor([[1., 0.],
                [0., 0.]])
    """

    def __init__(self, target: float = 0.10, *, leverage: float = 3.0, rows_per_year: int = 252) -> None:
        super().__init__()
        if not target > 0 or not leverage > 0 or rows_per_year < 1:
            settings = {"target": target, "leverage": leverage, "rows_per_year": rows_per_year}
            raise_invalid("VolatilityTarget", "target, leverage and rows_per_year must be > 0", **settings)
        self.target, self.leverage, self.rows_per_year = target, leverage, rows_per_year

    def forward(self, weights: Tensor, covariance: Tensor) -> Tensor:  # (..., T, N), (..., T, N, N) -> (..., T, N)
        """Scaled weights."""
        if covariance.shape[-2:] != weights.shape[-1:] * 2:
            rule = "weights must be (..., T, N) and covariance (..., T, N, N)"
            raise_invalid("VolatilityTarget", rule, weights=weights, covariance=covariance)
        covariance = torch.where(covariance.isnan(), 0.0, covariance)
        # an explicit sum, not a matrix product: its bits do not depend on the number of rows
        variance = (covariance * weights.unsqueeze(-1) * weights.unsqueeze(-2)).sum((-2, -1)) * self.rows_per_year
        gross, risky = weights.abs().sum(-1), variance > 0
        to_target = self.target / torch.where(risky, variance, 1.0).sqrt()
        to_limit = self.leverage / torch.where(gross > 0, gross, 1.0)
        scale = torch.where(risky, torch.minimum(to_target, to_limit), 0.0)
        return weights * scale.unsqueeze(-1)
