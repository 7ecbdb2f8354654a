"""Log-likelihood of GARCH with its first and second derivatives, in one pass over time; used by `garch_fit`."""

import torch
from torch import Tensor

from torch_opkit import Cases, Op, Sample, widest


def _reference(
    returns: Tensor,  # (..., T, N)
    parameters: Tensor,  # (..., 4, N): omega, alpha of positive and of negative returns, beta
    backcast: Tensor,  # (..., N): variance and squared return before the first row
    tail: Tensor | None,  # (..., 2, N): nu of Student's t, and the derivative by nu of ln of its normalizing constant
    asymmetric: bool,
    derivatives: bool,
) -> Tensor:
    """Sums over time (..., statistics, N): the log-likelihood without its constants; its gradient by omega, alpha (two
    if asymmetric), beta and nu; the upper triangles, by columns, of the negative Hessian and of the squared scores.

    A missing return is replaced by its expectation in the variance and adds nothing to the likelihood. Without
    `derivatives` all but the log-likelihood are zero.
    """
    omega, alpha, alpha_negative, beta = widest(parameters).unbind(-2)
    alphas = 1 + asymmetric
    size = alphas + 2
    one, start = torch.ones_like(omega), widest(backcast)
    shares, persistence = [one / alphas] * alphas, (alpha + alpha_negative) / 2 + beta
    h = omega + persistence * start
    dh = torch.stack([one, *(x * start for x in shares), start], -2)  # derivatives of h by the parameters
    d2h = dh.unsqueeze(-2) * torch.zeros_like(dh).unsqueeze(-3)
    zero = torch.zeros_like(one)
    sums: list[Tensor] = []
    for r in widest(returns).unbind(-2):
        observed = ~r.isnan()
        x = torch.where(observed, r, 0)
        likelihood, d_log_h, curvature, by_nu = _row(x * x / h, tail, observed)
        u = dh / h.unsqueeze(-2)
        score = torch.cat([d_log_h.unsqueeze(-2) * u, *by_nu[:1]], -2)
        information = (d_log_h + curvature)[..., None, None, :] * u.unsqueeze(-2) * u.unsqueeze(-3)
        information = information - (d_log_h / h)[..., None, None, :] * d2h
        if tail is not None:
            mixed = -(by_nu[1] * u)
            columns = torch.cat([information, mixed.unsqueeze(-3)], -3)
            information = torch.cat([columns, torch.cat([mixed, by_nu[2]], -2).unsqueeze(-2)], -2)
        outer = score.unsqueeze(-2) * score.unsqueeze(-3)
        row = [likelihood - torch.where(observed, h.log() / 2, 0), score, information, outer]
        sums = [a + b for a, b in zip(sums, row)] if sums else row
        slope = torch.where(observed, beta, persistence)
        d_slope = torch.stack([zero, *(torch.where(observed, 0, share) for share in shares), one], -2)
        d2h = (
            slope[..., None, None, :] * d2h
            + d_slope.unsqueeze(-2) * dh.unsqueeze(-3)
            + d_slope.unsqueeze(-3) * dh.unsqueeze(-2)
        )
        applies = [(x >= 0).to(x), (x < 0).to(x)] if asymmetric else [one]  # 1 where an alpha applies to the return
        squares = [torch.where(observed, x * x * a, h * share) for a, share in zip(applies, shares)]
        dh = torch.stack([one, *squares, h], -2) + slope.unsqueeze(-2) * dh
        weight = torch.where(x < 0, alpha_negative, alpha)
        h = omega + torch.where(observed, weight * x * x + beta * h, persistence * h)
    return _pack(sums, returns, size + (tail is not None), derivatives)


def _row(z2: Tensor, tail: Tensor | None, observed: Tensor) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
    """Log-likelihood of a row without its ln h / 2, the derivative by ln h, minus the second one, and those by nu.

    The last are the derivative by nu, the mixed one by nu and ln h, and minus the second one by nu. z2 is r^2 / h.
    """
    count = observed.to(z2)
    if tail is None:
        return -z2 / 2, (z2 - count) / 2, z2 / 2, []
    nu, constant_slope = widest(tail).unbind(-2)
    inverse_df, half = 1 / (nu - 2), (nu + 1) / 2
    q = z2 * inverse_df
    qw, w = q / (1 + q), 1 / (1 + q)
    d_nu = count * constant_slope - q.log1p() / 2 + half * qw * inverse_df
    d_nu_log_h = qw / 2 - half * qw * w * inverse_df
    curvature_nu = half * q * inverse_df**2 * w * (w + 1) - qw * inverse_df
    by_nu = [x.unsqueeze(-2) for x in (d_nu, d_nu_log_h, curvature_nu)]
    return -half * q.log1p(), half * qw - count / 2, half * qw * w, by_nu


def _pack(sums: list[Tensor], returns: Tensor, size: int, derivatives: bool) -> Tensor:
    y = returns.new_zeros((*returns.shape[:-2], 1 + size + size * (size + 1), returns.shape[-1]))
    if sums:
        columns = [(i, j) for j in range(size) for i in range(j + 1)]
        triangles = [torch.stack([x[..., i, j, :] for i, j in columns], -2) for x in sums[2:]]
        full = torch.cat([sums[0].unsqueeze(-2), sums[1], *triangles], -2)
        y = (full if derivatives else torch.cat([full[..., :1, :], torch.zeros_like(full[..., 1:, :])], -2)).to(y)
    return y


def _fake(returns: Tensor, tail: Tensor | None, asymmetric: bool) -> Tensor:
    size = 3 + asymmetric + (tail is not None)
    return returns.new_empty((*returns.shape[:-2], 1 + size + size * (size + 1), returns.shape[-1]))


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    returns = torch.randn(2, 9, 3, dtype=torch.double, generator=generator)
    uniform = torch.rand(2, 7, 3, dtype=torch.double, generator=generator) / 2 + 0.1
    parameters, backcast, tail = (
        uniform[:, :4],
        2 * uniform[:, 4],
        uniform[:, 5:] + torch.tensor([[4.0], [0.0]]).double(),
    )
    symmetric = parameters[:, [0, 1, 1, 3]]
    gaps = returns.clone()
    gaps[0, 0, 0] = gaps[0, 4:6, 1] = gaps[1, -1, 2] = torch.nan
    return Cases(
        function=_function,
        samples=(
            Sample(returns, parameters, backcast, tail, asymmetric=True),
            Sample(gaps, parameters, backcast, tail, asymmetric=True),
            Sample(gaps, symmetric, backcast, asymmetric=False),
            Sample(gaps, symmetric, backcast, tail, asymmetric=False, derivatives=False),
        ),
    )


def _function(
    returns: Tensor,
    parameters: Tensor,
    backcast: Tensor,
    tail: Tensor | None = None,
    *,
    asymmetric: bool,
    derivatives: bool = True,
) -> Tensor:
    y: Tensor = operator(returns, parameters, backcast, tail, asymmetric, derivatives)
    return y


operator = Op("commodity::garch_score", reference=_reference, fake=_fake, cases=_cases, time=None)
