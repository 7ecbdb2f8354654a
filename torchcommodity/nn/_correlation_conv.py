"""Convolution over correlation matrices, whatever the order of the assets."""

from typing import Any

import torch
from torch import Tensor, nn

from torchcommodity.nn._fused import ConvBN2d
from torchcommodity.opkit.arguments import check_integer, raise_invalid


class CorrelationConv(nn.Module):
    """What each asset's correlations say of it: two convolutions with batch norm over every pair, then a mean.

    A kernel of 3 x 3 would read neighboring rows of the matrix, and who is whose neighbor is an accident of the order
    of columns. So the kernels are 1 x 1 over the pair (i, j), and the context comes from means instead of neighbors:
    each pair sees its own values, the mean over i's pairs, over j's pairs, and over all. Permuting the assets permutes
    the output.

    Args:
        channels: K, matrices per row, such as the correlations and their change.
        width: C, channels of both convolutions and of the output.
        momentum: of the running statistics, as `torch.nn.BatchNorm2d` takes it.

    Shape:
        matrices (..., K, N, N) -> (..., N, C). The diagonal, and a pair of which a value is NaN, do not count; an asset
        without any pair gets zeros.

    In evaluation a row depends on itself only; in training batch norm takes the moments of the whole batch.

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
        self, channels: int, width: int, momentum: float | None = 0.1, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        check_integer("CorrelationConv", 1, channels=channels, width=width)
        self.channels = channels
        kind = {"momentum": momentum, "device": device, "dtype": dtype}
        self.first = ConvBN2d(4 * channels, width, 1, bias=False, **kind)
        self.second = ConvBN2d(width, width, 1, bias=False, **kind)

    def forward(self, matrices: Tensor) -> Tensor:  # (..., K, N, N) -> (..., N, C)
        shape = matrices.shape
        if len(shape) < 3 or shape[-3] != self.channels or shape[-1] != shape[-2]:
            raise_invalid(
                "CorrelationConv", f"matrices must be (..., K, N, N) with K = {self.channels}", matrices=matrices
            )
        x = matrices.flatten(0, -4) if len(shape) > 3 else matrices.unsqueeze(0)
        pair = ~torch.eye(shape[-1], dtype=torch.bool, device=x.device)
        known = (x.isfinite().all(-3, keepdim=True) & pair).to(x)  # (M, 1, N, N)
        x = torch.where(known > 0, x, 0.0)
        of_i, of_all = _mean(x, known, (-1,)), _mean(x, known, (-2, -1))
        context = [each.expand_as(x) for each in (of_i, _mean(x, known, (-2,)), of_all)]
        y = torch.relu(self.second(torch.relu(self.first(torch.cat([x, *context], -3)))))
        pooled = _mean(y * known, known, (-1,)).squeeze(-1).mT  # (M, N, C)
        return pooled.reshape(*shape[:-3], shape[-1], -1)


def _mean(x: Tensor, known: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The mean of what is known, which is zero elsewhere; zero of nothing."""
    return x.sum(axes, keepdim=True) / known.sum(axes, keepdim=True).clamp(min=1)
