"""Symmetric matrices (..., N, N) and their packed form: the pairs i < j, in the order of `torch.triu_indices`."""

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

from torch_opkit.arguments import check_panel, raise_invalid


def correlation_matrix(
    pairs: Tensor,  # (..., T, P)
) -> Tensor:  # (..., T, N, N)
    """Correlation matrices from packed pairs, as `rolling_correlation(..., packed=True)` returns them.

    Args:
        pairs: One correlation for each i < j, in the order of `torch.triu_indices(N, N, offset=1)`: P = N (N - 1) / 2.

    Returns:
        Symmetric matrices. The diagonal is 1 where an asset has a valid correlation with any other asset, else NaN.

    Raises:
        ValueError, TypeError: If `pairs` is not a floating-point panel or P is not N (N - 1) / 2 for any N.

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
    matrices = unpack_pairs(pairs, assets)
    diagonal = torch.eye(assets, dtype=torch.bool, device=pairs.device)
    valid = (matrices.isfinite() & ~diagonal).any(-1)
    return torch.where(diagonal, torch.where(valid, 1.0, torch.nan).to(pairs).unsqueeze(-1), matrices)


def pack_pairs(matrices: Tensor) -> Tensor:
    """(..., N, N) -> (..., P)."""
    assets = matrices.shape[-1]
    row, column = torch.triu_indices(assets, assets, offset=1, device=matrices.device)
    return matrices[..., row, column]


def unpack_pairs(pairs: Tensor, assets: int) -> Tensor:
    """(..., P) -> (..., N, N), with zeros on the diagonal."""
    n = torch.arange(assets, device=pairs.device)
    position = pair_position(n, n.unsqueeze(-1), assets)
    position = position.where(n != n.unsqueeze(-1), pairs.shape[-1])
    return pad(pairs, (0, 1))[..., position]


def pair_position(first: Tensor, second: Tensor, assets: int) -> Tensor:
    """Where the pair of two different assets, in any order, is among the packed pairs."""
    low, high = torch.minimum(first, second), torch.maximum(first, second)
    return low * (2 * assets - low - 1) // 2 + high - low - 1


def all_pairs(x: Tensor) -> tuple[Tensor, Tensor]:
    """(..., T, N) -> two panels (..., T, N * N): the first and the second asset of every ordered pair."""
    square = (*x.shape, x.shape[-1])
    return x.unsqueeze(-1).expand(square).flatten(-2), x.unsqueeze(-2).expand(square).flatten(-2)
