"""Orthogonal matrices by the matrix exponential, on every device."""

import torch
from torch import Tensor, nn

from torch_opkit import has_float64
from torch_opkit.arguments import raise_invalid


class Orthogonal(nn.Module):
    """Square orthogonal parameter Q = B exp(A), for an unconstrained square x: A = L - L^T, L its lower triangle.

    The values and the state dict are those of `torch.nn.utils.parametrizations.orthogonal` with its map "matrix_exp",
    which does not run on Apple's GPUs: PyTorch has no matrix exponential for them. Here the CPU computes it then, and
    the rest stays on the device. For `torch.nn.utils.parametrize.register_parametrization(layer, name, Orthogonal())`.

    Shape:
        x (..., H, H) -> (..., H, H). B is a buffer: the orthogonal factor of the assigned value, or the value itself
        if it is orthogonal.

    Raises:
        ValueError: an assigned value is not square; use torch's, with `orthogonal_map="householder"`.

    References:
        Lezcano-Casado (2019). Trivializations for gradient-based optimization on manifolds. arXiv:1909.09501.

    Example:
        >>> import torch
        >>> from torch.nn.utils import parametrize
        >>> from torchcommodity import nn
        >>> layer = parametrize.register_parametrization(torch.nn.Linear(4, 4), "weight", nn.Orthogonal())
        >>> torch.allclose(layer.weight @ layer.weight.mT, torch.eye(4), atol=1e-6)
        True
    """

    base: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        """Q from x."""
        lower = x.tril()
        return self.base @ _matrix_exp(lower - lower.mT)

    @torch.no_grad()
    def right_inverse(self, q: Tensor) -> Tensor:
        """x = 0, with B the orthogonal factor of q."""
        if q.dim() < 2 or q.shape[-1] != q.shape[-2]:
            raise_invalid("Orthogonal", "the parameter must be square (..., H, H)", parameter=q)
        identity = torch.eye(q.shape[-1], dtype=q.dtype, device=q.device)
        is_orthogonal = torch.allclose(q.mT @ q, identity, atol=10 * len(identity) * torch.finfo(q.dtype).eps)
        self.base = q.clone() if is_orthogonal else _orthogonal_factor(q)
        return torch.zeros_like(q)


def _orthogonal_factor(x: Tensor) -> Tensor:
    """Q of x = Q R with a positive diagonal of R, which makes it unique."""
    q, r = torch.linalg.qr(x)
    negative = r.diagonal(dim1=-2, dim2=-1) < 0  # 0 where x is singular, as zeros are: any sign will do
    factor: Tensor = torch.where(negative.unsqueeze(-2), -q, q)
    return factor


def _matrix_exp(x: Tensor) -> Tensor:
    # what has no float64 are Apple's GPUs, for which PyTorch has no matrix exponential either
    result: Tensor = torch.linalg.matrix_exp(x if has_float64(x.device) else x.cpu())
    return result.to(x.device)
