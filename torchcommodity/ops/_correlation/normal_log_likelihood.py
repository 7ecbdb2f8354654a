"""Log-density of the multivariate normal distribution for each row, without the values that are missing; under DCC."""

import math

import torch
from torch import Tensor

from torch_opkit import Bad, Cases, Golden, Op, Sample
from torch_opkit.arguments import raise_invalid
from torchcommodity.ops._correlation.dcc_correlation import Parameter, dcc_correlation
from torchcommodity.ops._correlation.sweep import sweep, symmetric
from torchcommodity.ops._volatility.parameters import float64_constant


def normal_log_likelihood(
    x: Tensor,  # (..., N)
    covariance: Tensor,  # (..., N, N)
) -> Tensor:  # (...)
    """Log-density of each row under a normal distribution with mean zero and a covariance matrix of its own.

    -(n ln 2 pi + ln |S| + x' S^-1 x) / 2. The logarithmic score of a forecast of covariances or correlations.

    Args:
        x: Rows, such as residuals (..., T, N); NaN is missing.
        covariance: Symmetric positive definite matrix S of each row, in squared units of `x`, such as (..., T, N, N)
            of `dcc_correlation`; leading axes broadcast to those of `x`.

    Returns:
        Log-density of the values that are there, of which a row has n; 0 if there are none. NaN where their part of S
        has a NaN or is not positive definite.

    Raises:
        ValueError, TypeError: If the shapes do not match, or a tensor is not floating-point.

    Devices: CPU and CUDA, in float64 internally; elsewhere the reference in plain PyTorch. Differentiable in both
    tensors, to any order, in reverse and forward mode; gradients at NaN results are 0.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> x = torch.tensor([[0.0, 0.0], [1.0, float("nan")]])
        >>> ops.normal_log_likelihood(x, torch.eye(2))
        tensor([-1.8379, -1.4189])
    """
    if not (isinstance(x, Tensor) and isinstance(covariance, Tensor) and x.is_floating_point()):
        raise_invalid("normal_log_likelihood", "x and covariance must be floating-point tensors", TypeError, x=x)
    shape, expected = (*x.shape, *x.shape[-1:]), "x must be (..., N) and covariance broadcast to (..., N, N)"
    try:
        matrices = covariance.to(x.dtype).expand(shape)
    except RuntimeError:
        raise_invalid("normal_log_likelihood", expected, x=x, covariance=covariance)
    if not x.dim():
        raise_invalid("normal_log_likelihood", expected, x=x, covariance=covariance)
    y: Tensor = operator(x, matrices)
    return y


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


def _reference(x: Tensor, covariance: Tensor) -> Tensor:
    observed = ~x.isnan()
    values = torch.where(observed, x, 0)
    swept, log_determinant = sweep(symmetric(covariance), observed)
    both = observed.unsqueeze(-1) & observed.unsqueeze(-2)
    solution = -(torch.where(both, swept, 0) * values.unsqueeze(-2)).sum(-1)
    log_tau = float64_constant(log_determinant, math.log(math.tau))
    return -(log_tau * observed.to(x).sum(-1) + log_determinant + (values * solution).sum(-1)) / 2


def _fake(x: Tensor) -> Tensor:
    return x.new_empty(x.shape[:-1])


def _backward(grad: Tensor, *, x: Tensor, covariance: Tensor, output: Tensor) -> tuple[Tensor, Tensor]:
    # With w = S_oo^-1 x_o: dx = -g w, dS = g (w w' - S_oo^-1) / 2. What is missing has the covariance of an identity.
    observed = ~x.isnan()
    both = observed.unsqueeze(-1) & observed.unsqueeze(-2)
    identity = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    valid = ~covariance.isnan() | ~both
    inverse = torch.linalg.inv_ex(torch.where(both & valid, symmetric(covariance), identity))[0]
    inverse = torch.where(both, inverse, 0)
    w = (inverse * torch.where(observed, x, 0).unsqueeze(-2)).sum(-1)
    scale = grad[..., None, None] / 2
    return -grad.unsqueeze(-1) * w, scale * (w.unsqueeze(-1) * w.unsqueeze(-2) - inverse)


def _oracle(x: Tensor, covariance: Tensor) -> Tensor:
    from scipy.stats import multivariate_normal

    rows = x.reshape(-1, x.shape[-1])
    matrices = covariance.expand(*x.shape, x.shape[-1]).reshape(-1, *covariance.shape[-2:])
    values = []
    for row, matrix in zip(rows, matrices):
        valid = ~row.isnan()
        density = multivariate_normal(cov=matrix[valid][:, valid].numpy()) if valid.any() else None
        values.append(float(density.logpdf(row[valid].numpy())) if density else 0.0)
    return x.new_tensor(values).reshape(x.shape[:-1])


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 5, 3, dtype=torch.double, generator=generator)
    gaps = x.clone()
    gaps[0, 0, 0] = gaps[0, 1, 1:] = gaps[1, 2] = torch.nan
    noise = torch.randn(2, 5, 3, 3, dtype=torch.double, generator=generator)
    covariance = noise @ noise.mT + torch.eye(3, dtype=torch.double)
    return Cases(
        function=normal_log_likelihood,
        samples=(Sample(x, covariance), Sample(gaps, covariance[0, 0])),
        bad=(
            Bad(Sample(x, covariance[..., :2]), r"covariance broadcast to \(\.\.\., N, N\); got x \(2, 5, 3\), cov"),
            Bad(Sample(x.long(), covariance), "x and covariance must be floating-point tensors", TypeError),
        ),
        golden=(
            Golden(
                Sample(torch.zeros(1, 2).double(), torch.eye(2).double()),
                torch.tensor([-math.log(math.tau)], dtype=torch.double),
                "the peak of the standard normal density in two dimensions is 1 / (2 pi)",
            ),
        ),
        oracle=_oracle,
    )


operator = Op(
    "commodity::normal_log_likelihood", reference=_reference, fake=_fake, backward=_backward, cases=_cases, time=None
)
