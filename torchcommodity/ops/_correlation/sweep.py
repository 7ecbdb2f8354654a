"""The sweep operator of regression: inverse, determinant and conditional expectations of a covariance matrix."""

import torch
from torch import Tensor


def symmetric(matrix: Tensor) -> Tensor:
    """(..., N, N): the mean of a matrix and its transpose."""
    return (matrix + matrix.mT) / 2


def sweep(
    matrix: Tensor,  # (..., N, N), symmetric
    observed: Tensor,  # (..., N), bool
) -> tuple[Tensor, Tensor]:  # (..., N, N), (...)
    """Sweep a covariance matrix S on the observed indices o; m are the others.

    The result is [[-S_oo^-1, S_oo^-1 S_om], [S_mo S_oo^-1, S_mm - S_mo S_oo^-1 S_om]]: minus the inverse, the
    regression coefficients and the conditional covariance; and ln |S_oo|. An index whose pivot is not positive is left
    out, and the determinant is then NaN. In elementary operations, since ONNX has no linear algebra.

    Reference: Goodnight (1979). A tutorial on the sweep operator. American Statistician 33(3). doi:10.2307/2683825
    """
    log_determinant = torch.zeros_like(matrix[..., 0, 0])
    for k in range(matrix.shape[-1]):
        pivot = matrix[..., k, k]
        positive = pivot > 0
        divisor = torch.where(positive, pivot, 1)
        row = matrix[..., k, :] / divisor.unsqueeze(-1)
        is_k = torch.arange(matrix.shape[-1], device=matrix.device) == k
        swept = matrix - matrix[..., :, k].unsqueeze(-1) * row.unsqueeze(-2)
        swept = torch.where(is_k, row.unsqueeze(-1), torch.where(is_k.unsqueeze(-1), row.unsqueeze(-2), swept))
        swept = torch.where(is_k & is_k.unsqueeze(-1), -1 / divisor[..., None, None], swept)
        matrix = torch.where((observed[..., k] & positive)[..., None, None], swept, matrix)
        log_pivot = torch.where(positive, divisor.log(), torch.nan)
        log_determinant = log_determinant + torch.where(observed[..., k], log_pivot, 0)
    return matrix, log_determinant


def regress(matrix: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    """Conditional expectations of x (..., N) with covariance `matrix`, given its values that are not NaN.

    Returns `observed`, the regression coefficients K (..., N, N) of all values on the observed ones (the identity among
    these), the conditional means K x, the conditional covariance (zero where a value is observed), and S_oo^-1 x_o.
    """
    observed = ~x.isnan()
    both = observed.unsqueeze(-2) & observed.unsqueeze(-1)
    unseen = ~observed.unsqueeze(-2) & ~observed.unsqueeze(-1)
    swept = sweep(matrix, observed)[0]
    identity = torch.eye(x.shape[-1], dtype=matrix.dtype, device=matrix.device)
    coefficients = torch.where(both, identity, torch.where(observed.unsqueeze(-2), swept, 0))
    values = torch.where(observed, x, 0).unsqueeze(-2)
    solution = -(torch.where(both, swept, 0) * values).sum(-1)
    return observed, coefficients, (coefficients * values).sum(-1), torch.where(unseen, swept, 0), solution
