"""Log-likelihood of DCC with its derivatives by the two weights, in one pass over time; used by `dcc_fit`."""

import math

import torch
from torch import Tensor

from torch_opkit import Cases, Op, Sample
from torchcommodity.ops._correlation.dcc_correlation import normalize_covariance
from torchcommodity.ops._correlation.dcc_correlation_backward import example_parameters
from torchcommodity.ops._correlation.sweep import regress, sweep, symmetric


def _reference(
    z: Tensor,  # (..., T, N)
    weights: Tensor,  # (..., 2): a, b
    target: Tensor,  # (..., N, N), Q before the first row too
    derivatives: bool,
) -> Tensor:
    """Sums over time (..., 9): the log-likelihood; its gradient by a and b; aa, ab and bb of the expected information,
    and of the squared scores.

    A row counts with the residuals that it has. Without `derivatives` all but the log-likelihood are zero.
    """
    a, b = weights[..., 0, None, None], weights[..., 1, None, None]
    target = symmetric(target)
    q, d_q = target, [torch.zeros_like(target)] * 2
    sums = z.new_zeros((*weights.shape[:-1], 9))
    identity = torch.eye(z.shape[-1], dtype=z.dtype, device=z.device)
    for row in z.unbind(-2):
        sums = sums + _row(row, q, d_q)
        _, coefficients, u, covariance, solution = regress(q, row)
        rest, square = identity - coefficients, u.unsqueeze(-1) * u.unsqueeze(-2) + covariance
        # with a missing residual, z z' is replaced by an expectation that depends on Q
        d_means = [(rest @ d @ solution.unsqueeze(-1)) * u.unsqueeze(-2) for d in d_q]
        d_squares = [rest @ d @ rest.mT + mean + mean.mT for d, mean in zip(d_q, d_means)]
        steps = (square - target, q - target)
        d_q = [step + a * d_square + b * d for step, d_square, d in zip(steps, d_squares, d_q)]
        q = (1 - a - b) * target + a * square + b * q
    return sums if derivatives else torch.cat([sums[..., :1], torch.zeros_like(sums[..., 1:])], -1)


def _row(z: Tensor, q: Tensor, d_q: list[Tensor]) -> Tensor:
    """The terms of one row (..., 9), given Q and its derivatives by a and b."""
    observed = ~z.isnan()
    correlation = normalize_covariance(q)
    swept, log_determinant = sweep(correlation, observed)
    inverse = torch.where(observed.unsqueeze(-1) & observed.unsqueeze(-2), -swept, 0)
    v = (inverse * torch.where(observed, z, 0).unsqueeze(-2)).sum(-1)
    constant = math.log(math.tau) * observed.to(z).sum(-1)
    value = -(constant + log_determinant + (torch.where(observed, z, 0) * v).sum(-1)) / 2
    variance = q.diagonal(dim1=-2, dim2=-1)
    score, products = [], []
    for d in d_q:
        change = d.diagonal(dim1=-2, dim2=-1) / variance / 2
        scale = (variance.unsqueeze(-1) * variance.unsqueeze(-2)).sqrt()
        d_correlation = d / scale - correlation * (change.unsqueeze(-1) + change.unsqueeze(-2))
        products.append(inverse @ d_correlation)
        quadratic = (v.unsqueeze(-1) * v.unsqueeze(-2) * d_correlation).sum((-2, -1))
        score.append((quadratic - products[-1].diagonal(dim1=-2, dim2=-1).sum(-1)) / 2)
    pairs = ((0, 0), (0, 1), (1, 1))
    information = [(products[i] * products[j].mT).sum((-2, -1)) / 2 for i, j in pairs]
    return torch.stack([value, *score, *information, *(score[i] * score[j] for i, j in pairs)], -1)


def _fake(weights: Tensor) -> Tensor:
    return weights.new_empty((*weights.shape[:-1], 9))


def _function(z: Tensor, weights: Tensor, target: Tensor, *, derivatives: bool = True) -> Tensor:
    sums: Tensor = operator(z, weights, target, derivatives)
    return sums


def _cases() -> Cases:
    z, gaps, weights, target, _ = example_parameters(torch.Generator().manual_seed(0))
    return Cases(
        function=_function,
        samples=(
            Sample(z, weights, target),
            Sample(gaps, weights, target),
            Sample(gaps, weights, target, derivatives=False),
        ),
    )


operator = Op("commodity::dcc_score", reference=_reference, fake=_fake, cases=_cases, time=None)
