"""The pairs i < j of symmetric matrices (..., N, N), packed: (..., N (N - 1) / 2), in `torch.triu_indices`' order."""

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

from torchcommodity.opkit.arguments import check_panel, raise_invalid


def correlation_matrix(
    pairs: Tensor,  # (..., T, P)
) -> Tensor:  # (..., T, N, N)
    """The matrices of packed correlations: what `rolling_correlation(..., packed=True)` left out.

    Args:
        pairs: one value for each i < j, in the order of `torch.triu_indices(N, N, offset=1)`: P = N (N - 1) / 2.

    Returns:
        symmetric; 1 on the diagonal where an asset has a finite correlation with any other, else NaN.

    Raises:
        ValueError, TypeError: `pairs` is no floating-point panel, P is not N (N - 1) / 2.

    Devices: all. Differentiable.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.correlation_matrix(torch.tensor([[0.5, -0.2, 0.1]]))
        tensor([[[ 1.0000,  0.5000, -0.2000],
                 [ 0.5000,  1.0000,  0.1000],
                 [-0.2000,  0.1000,  1.0000]]])
    """
    check_panel("correlation_matrix", pairs=pairs)
    assets = (1 + math.isqrt(1 + 8 * pairs.shape[-1])) // 2
    if assets * (assets - 1) != 2 * pairs.shape[-1]:
        raise_invalid("correlation_matrix", "pairs must be (..., T, N (N - 1) / 2)", pairs=pairs)
    matrices = matrices_of(pairs, assets)
    known = (matrices.isfinite() & ~torch.eye(assets, dtype=torch.bool, device=pairs.device)).any(-1)
    return torch.where(
        torch.eye(assets, dtype=torch.bool, device=pairs.device),
        torch.where(known, 1.0, torch.nan).to(pairs).unsqueeze(-1),
        matrices,
    )


def pairs_of(matrices: Tensor) -> Tensor:
    """(..., N, N) -> (..., P)."""
    assets = matrices.shape[-1]
    row, column = torch.triu_indices(assets, assets, offset=1, device=matrices.device)
    return matrices[..., row, column]


def matrices_of(pairs: Tensor, assets: int) -> Tensor:
    """(..., P) -> (..., N, N), zero on the diagonal."""
    n = torch.arange(assets, device=pairs.device)
    low, high = torch.minimum(n, n.unsqueeze(-1)), torch.maximum(n, n.unsqueeze(-1))
    place = low * (2 * assets - low - 1) // 2 + high - low - 1
    place = place.where(low < high, pairs.shape[-1])
    return pad(pairs, (0, 1))[..., place]
