"""Permutation-equivariant convolution over correlation matrices."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.types import Device

from torch_opkit.arguments import check_integer, raise_invalid
from torchcommodity.nn._fused import ConvBN2d


class CorrelationConv(nn.Module):
    """Features of each asset from its correlations: two 1 x 1 convolutions with batch norm over all pairs, then a mean.

    A 3 x 3 kernel would mix neighboring rows of the matrix, but the order of the assets is arbitrary. Instead, the
    first convolution sees for each pair (i, j) its own values and their means over the pairs of i, over the pairs of j,
    and over all pairs. Permuting the assets permutes the output.

    Args:
        channels: K, matrices per row, such as the correlations and their change.
        width: C, channels of both convolutions and of the output.
        momentum: momentum of the running statistics, as in `torch.nn.BatchNorm2d`.

    Shape:
        matrices (..., K, N, N) -> (..., N, C). The diagonal and pairs with a NaN are ignored; the output of an
        asset without a valid pair is zero.

    In evaluation mode rows are independent; in training mode batch norm uses the moments of the whole batch.

    Raises:
        ValueError, TypeError: a size is below 1, matrices are not (..., K, N, N).

    References:
        Maron, Ben-Hamu, Shamir, Lipman (2019). Invariant and equivariant graph networks. arXiv:1812.09902.

    Example:
        >>> import torch
        >>> from torchcommodity import nn, ops
        >>> matrices = ops.rolling_correlation(torch.randn(4, 60, 5), window=20)  # (B, T, N, N), NaN during warm-up
        >>> nn.CorrelationConv(1, 8)(matrices.unsqueeze(-3)).shape
        torch.Size([4, 60, 5, 8])
    """

    def __init__(
        self,
        channels: int,
        width: int,
        momentum: float | None = 0.1,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_integer("CorrelationConv", 1, channels=channels, width=width)
        self.channels = channels
        options: dict[str, Any] = {"momentum": momentum, "device": device, "dtype": dtype}
        self.first = ConvBN2d(4 * channels, width, 1, bias=False, **options)
        self.second = ConvBN2d(width, width, 1, bias=False, **options)

    def forward(self, matrices: Tensor) -> Tensor:  # (..., K, N, N) -> (..., N, C)
        """Features of each asset from its pairs."""
        shape = matrices.shape
        if len(shape) < 3 or shape[-3] != self.channels or shape[-1] != shape[-2]:
            raise_invalid(
                "CorrelationConv", f"matrices must be (..., K, N, N) with K = {self.channels}", matrices=matrices
            )
        x = matrices.flatten(0, -4) if len(shape) > 3 else matrices.unsqueeze(0)
        off_diagonal = ~torch.eye(shape[-1], dtype=torch.bool, device=x.device)
        valid = (x.isfinite().all(-3, keepdim=True) & off_diagonal).to(x)  # (M, 1, N, N)
        x = torch.where(valid > 0, x, 0.0)
        context = [_mean(x, valid, axes).expand_as(x) for axes in ((-1,), (-2,), (-2, -1))]
        y = torch.relu(self.second(torch.relu(self.first(torch.cat([x, *context], -3)))))
        pooled = _mean(y * valid, valid, (-1,)).squeeze(-1).mT  # (M, N, C)
        return pooled.reshape(*shape[:-3], shape[-1], -1)


def _mean(x: Tensor, valid: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Mean over the valid elements of x, which is zero elsewhere; zero if there are none."""
    return x.sum(axes, keepdim=True) / valid.sum(axes, keepdim=True).clamp(min=1)
