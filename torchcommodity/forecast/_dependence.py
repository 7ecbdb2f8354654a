"""Dynamic conditional correlation of residuals: taken out of past rows, and simulated along paths."""

from typing import NamedTuple

import torch
from torch import Tensor

from torchcommodity.ops import dcc_correlation, dcc_fit


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


def _factor(q: Tensor) -> Tensor:  # (..., N, N)
    """Cholesky factor of Q scaled to a unit diagonal."""
    scale = q.diagonal(dim1=-2, dim2=-1).rsqrt()
    factor: Tensor = torch.linalg.cholesky(q) * scale.unsqueeze(-1)
    return factor
