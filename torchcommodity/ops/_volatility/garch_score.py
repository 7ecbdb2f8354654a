"""The log-likelihood of GARCH with its first and second derivatives, in one pass over time: what `garch_fit` climbs."""

import torch
from torch import Tensor

from torchcommodity.opkit import Cases, Op, Sample


def _reference(
    returns: Tensor,  # (..., T, N)
    parameters: Tensor,  # (..., 4, N): omega, alpha of rising returns, alpha of falling ones, beta
    backcast: Tensor,  # (..., N): the variance and the squared return before the first row
    tail: Tensor | None,  # (..., 2, N): nu of Student's t, and the derivative of ln of its normalizing factor by nu
    asymmetric: bool,
    derivatives: bool,
) -> Tensor:
    """(..., statistics, N): the log-likelihood without its constants; its gradient by omega, alpha (two if asymmetric),
    beta and nu; minus its second derivatives and the sum of squared scores, both as the columns of an upper triangle.

    A missing return counts as its expectation in the variance, and not at all in the likelihood. Without
    `derivatives` they are zero.
    """
    omega, rising, falling, beta = parameters.double().unbind(-2)
    arms = 1 + asymmetric
    size = arms + 2
    one, before = torch.ones_like(omega), backcast.double()
    by_arm, expected = [one / arms] * arms, (rising + falling) / 2 + beta
    h = omega + expected * before
    first = torch.stack([one, *(x * before for x in by_arm), before], -2)
    second = first.unsqueeze(-2) * torch.zeros_like(first).unsqueeze(-3)
    zero = torch.zeros_like(one)
    sums: list[Tensor] = []
    for r in returns.double().unbind(-2):
        seen = ~r.isnan()
        x = torch.where(seen, r, 0)
        likelihood, pull, bend, tailed = _row(x * x / h, tail, seen)
        u = first / h.unsqueeze(-2)
        score = torch.cat([pull.unsqueeze(-2) * u, *tailed[:1]], -2)
        bent = (pull + bend)[..., None, None, :] * u.unsqueeze(-2) * u.unsqueeze(-3)
        bent = bent - (pull / h)[..., None, None, :] * second
        if tail is not None:
            across = -(tailed[1] * u)
            bent = torch.cat(
                [torch.cat([bent, across.unsqueeze(-3)], -3), torch.cat([across, tailed[2]], -2).unsqueeze(-2)], -2
            )
        outer = score.unsqueeze(-2) * score.unsqueeze(-3)
        row = [likelihood - torch.where(seen, h.log() / 2, 0), score, bent, outer]
        sums = [a + b for a, b in zip(sums, row)] if sums else row
        slope = torch.where(seen, beta, expected)
        by = torch.stack([zero, *(torch.where(seen, 0, share) for share in by_arm), one], -2)  # dslope / dparameter
        second = (
            slope[..., None, None, :] * second
            + by.unsqueeze(-2) * first.unsqueeze(-3)
            + by.unsqueeze(-3) * first.unsqueeze(-2)
        )
        squares = [torch.where(seen, x * x * side, h * share) for side, share in zip(_sides(x, arms), by_arm)]
        first = torch.stack([one, *squares, h], -2) + slope.unsqueeze(-2) * first
        weight = torch.where(x < 0, falling, rising)
        h = omega + torch.where(seen, weight * x * x + beta * h, expected * h)
    return _packed(sums, returns, size + (tail is not None), derivatives)


def _sides(x: Tensor, arms: int) -> list[Tensor]:
    return [torch.ones_like(x)] if arms == 1 else [(x >= 0).to(x), (x < 0).to(x)]


def _row(z: Tensor, tail: Tensor | None, seen: Tensor) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
    """The log-likelihood of a row without ln h, its derivative by ln h, minus the second, and the derivatives by nu."""
    here = seen.to(z)
    if tail is None:
        return -z / 2, (z - here) / 2, z / 2, []
    nu, normalizing = tail.double().unbind(-2)
    rest, half = 1 / (nu - 2), (nu + 1) / 2
    q = z * rest
    part, share = q / (1 + q), 1 / (1 + q)
    score = here * normalizing - q.log1p() / 2 + half * part * rest
    across = part / 2 - half * part * share * rest
    bend = half * q * rest**2 * share * (share + 1) - part * rest
    by_nu = [x.unsqueeze(-2) for x in (score, across, bend)]
    return -half * q.log1p(), half * part - here / 2, half * part * share, by_nu


def _packed(sums: list[Tensor], returns: Tensor, size: int, derivatives: bool) -> Tensor:
    y = returns.new_zeros((*returns.shape[:-2], 1 + size + size * (size + 1), returns.shape[-1]))
    if sums:
        columns = [(i, j) for j in range(size) for i in range(j + 1)]
        triangles = [torch.stack([x[..., i, j, :] for i, j in columns], -2) for x in sums[2:]]
        full = torch.cat([sums[0].unsqueeze(-2), sums[1], *triangles], -2)
        y = (full if derivatives else torch.cat([full[..., :1, :], torch.zeros_like(full[..., 1:, :])], -2)).to(y)
    return y


def _fake(
    returns: Tensor, parameters: Tensor, backcast: Tensor, tail: Tensor | None, asymmetric: bool, derivatives: bool
) -> Tensor:
    size = 3 + asymmetric + (tail is not None)
    return returns.new_empty((*returns.shape[:-2], 1 + size + size * (size + 1), returns.shape[-1]))


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    returns = torch.randn(2, 9, 3, dtype=torch.double, generator=generator)
    shares = torch.rand(2, 7, 3, dtype=torch.double, generator=generator) / 2 + 0.1
    parameters, backcast, tail = shares[:, :4], 2 * shares[:, 4], shares[:, 5:] + torch.tensor([[4.0], [0.0]]).double()
    symmetric = parameters[:, [0, 1, 1, 3]]
    holes = returns.clone()
    holes[0, 0, 0] = holes[0, 4:6, 1] = holes[1, -1, 2] = torch.nan
    return Cases(
        function=_function,
        samples=(
            Sample(returns, parameters, backcast, tail, asymmetric=True),
            Sample(holes, parameters, backcast, tail, asymmetric=True),
            Sample(holes, symmetric, backcast, asymmetric=False),
            Sample(holes, symmetric, backcast, tail, asymmetric=False, derivatives=False),
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


operator = Op("garch_score", reference=_reference, fake=_fake, cases=_cases, time=None)
