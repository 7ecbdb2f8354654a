"""Log-likelihood of standardized residuals under dynamic conditional correlation."""

from torch import Tensor

from torchcommodity.ops._correlation.dcc_correlation import Parameter, dcc_correlation
from torchcommodity.ops._correlation.normal_log_likelihood import normal_log_likelihood


def dcc_log_likelihood(
    z: Tensor,  # (..., T, N)
    a: Parameter,  # (...)
    b: Parameter,  # (...)
    target: Tensor,  # (..., N, N)
    initial: Tensor | None = None,  # (..., N, N)
) -> Tensor:  # (..., T)
    """Log-likelihood of each row under DCC: the density of z_t with the correlation R_t of `dcc_correlation`.

    -(n ln 2 pi + ln |R_t| + z_t' R_t^-1 z_t) / 2, which sums over time to the log-likelihood that `dcc_fit` maximizes.

    Args:
        z, a, b, target, initial: As in `dcc_correlation`, with its NaN rule and errors.

    Returns:
        Log-likelihood of the residuals that a row has, given the rows before it; 0 if it has none. Causal, no warm-up.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Differentiable in all tensors, to any order, in
    reverse and forward mode.

    References:
        Engle (2002). Dynamic conditional correlation. Journal of Business and Economic Statistics 20(3).
        doi:10.1198/073500102288618487

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> z = torch.tensor([[1.0, 1.0], [2.0, -2.0]])
        >>> ops.dcc_log_likelihood(z, a=0.1, b=0.8, target=torch.eye(2))
        tensor([-2.8379, -6.2773])
    """
    return normal_log_likelihood(z, dcc_correlation(z, a, b, target, initial))
