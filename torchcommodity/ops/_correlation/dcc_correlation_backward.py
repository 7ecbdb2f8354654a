"""Backward pass of `dcc_correlation`: gradients of residuals, weights, target and initial Q in one reverse pass."""

import torch
from torch import Tensor

from torch_opkit import Cases, Op, Sample, vjp
from torchcommodity.ops._correlation.sweep import regress, symmetric


def _reference(
    grad: Tensor,  # (..., T, N, N), the incoming gradient of Q
    z: Tensor,  # (..., T, N)
    weights: Tensor,  # (..., 2): a, b
    target: Tensor,  # (..., N, N)
    q: Tensor,  # (..., T, N, N)
) -> Tensor:
    """Gradients (..., T N + 2 + 2 N^2) with respect to z, weights, target and the initial Q, flattened, in order."""
    # With u = K z the conditional mean, C the conditional covariance and E = I - K (zero without missing residuals),
    # dQ_{t+1} = a (du u' + u du' + E dQ E') + b dQ, du = K dz + E dQ w, where w = Q_oo^-1 z_o. The adjoint
    # A_t = dL / dQ_t is therefore A_t = grad_t + b A + a E'A E + sym(E'g w') with A = A_{t+1} and g = 2 a A u.
    # dz_t = K'g    da = sum <A, u u' + C - target>    db = sum <A, Q_t - target>    dtarget = (1 - a - b) sum A
    grad, q, target = symmetric(grad), symmetric(q), symmetric(target)
    a, b = weights[..., 0, None, None], weights[..., 1, None, None]
    observed, coefficients, means, covariance, solution = regress(q, z)
    rest = torch.eye(z.shape[-1], dtype=z.dtype, device=z.device) - coefficients
    squares = means.unsqueeze(-1) * means.unsqueeze(-2) + covariance
    adjoint, adjoints = torch.zeros_like(target), []  # adjoints: A_{t+1}, from the last row to the first
    for t in reversed(range(z.shape[-2])):
        adjoints.append(adjoint)
        g = 2 * a * (adjoint @ means[..., t, :, None])
        e = rest[..., t, :, :]
        through_mean = symmetric((e.mT @ g) * solution[..., t, None, :])
        adjoint = grad[..., t, :, :] + b * adjoint + a * (e.mT @ adjoint @ e) + through_mean
    later = torch.stack(adjoints[::-1], -3) if adjoints else torch.zeros_like(q)
    g = 2 * a.unsqueeze(-3) * (later @ means.unsqueeze(-1))
    d_z = torch.where(observed, (coefficients.mT @ g).squeeze(-1), 0)
    d_weights = [(later * (x - target.unsqueeze(-3))).sum((-3, -2, -1)) for x in (squares, q)]
    matrices = [((1 - a - b) * later.sum(-3)).flatten(-2), adjoint.flatten(-2)]
    return torch.cat([d_z.flatten(-2), torch.stack(d_weights, -1), *matrices], -1)


def split_gradients(gradients: Tensor, z: Tensor) -> tuple[Tensor, ...]:
    """The gradients of z, weights, target and the initial Q, in their shapes."""
    steps, assets = z.shape[-2:]
    sizes = [steps * assets, 2, assets**2, assets**2]
    d_z, d_weights, d_target, d_initial = gradients.split(sizes, -1)
    matrices = [x.unflatten(-1, (assets, assets)) for x in (d_target, d_initial)]
    return d_z.reshape(z.shape), d_weights, *matrices


def _fake(z: Tensor) -> Tensor:
    steps, assets = z.shape[-2:]
    return z.new_empty((*z.shape[:-2], steps * assets + 2 + 2 * assets**2))


def _regress(q: Tensor, z: Tensor) -> tuple[Tensor, ...]:
    """E, K, the means u and the squares u u' + C of every row, and w, as `regress`, but by inverses: their derivative
    is one formula, where that of N sweeps is N of them."""
    observed = ~z.isnan()
    both = observed.unsqueeze(-2) & observed.unsqueeze(-1)
    identity = torch.eye(z.shape[-1], dtype=q.dtype, device=q.device)
    inverse = torch.linalg.inv_ex(torch.where(both, q, identity))[0].where(both, 0)
    seen = q.where(observed.unsqueeze(-2), 0)  # its columns: the covariances with what is observed
    coefficients = torch.where(both, identity, (seen @ inverse).where(observed.unsqueeze(-2), 0))
    unseen = ~observed.unsqueeze(-2) & ~observed.unsqueeze(-1)
    covariance = (q - coefficients @ seen.mT).where(unseen, 0)
    values = z.where(observed, 0).unsqueeze(-1)
    means = coefficients @ values
    return identity - coefficients, coefficients, means, means @ means.mT + covariance, inverse @ values


def _backward(
    cotangent: Tensor, *, grad: Tensor, z: Tensor, weights: Tensor, target: Tensor, q: Tensor
) -> tuple[Tensor, ...]:
    # The transpose of the adjoint is the recurrence of dQ forward in time, B_{t+1} = U_t + b B + a E B E' +
    # 2 a sym(E B w u') with B = B_t, where U is the gradient of A_{t+1} in the outputs; dgrad_t = B_t. With A and B,
    # the other gradients are those of outputs and adjoints at all rows at once.
    d_z, d_weights, d_target, d_initial = split_gradients(cotangent, z)
    d_z = d_z.where(~z.isnan(), 0).unsqueeze(-1)
    d_a, d_b = d_weights[..., 0, None, None, None], d_weights[..., 1, None, None, None]

    def terms(z: Tensor, weights: Tensor, target: Tensor, q: Tensor) -> tuple[Tensor, ...]:
        a, b = weights[..., 0, None, None, None], weights[..., 1, None, None, None]
        rest, coefficients, means, squares, solution = _regress(symmetric(q), z)
        target = symmetric(target).unsqueeze(-3)
        from_outputs = 2 * a * (coefficients @ d_z) @ means.mT + d_a * (squares - target)
        from_outputs = from_outputs + d_b * (symmetric(q) - target) + (1 - a - b) * d_target.unsqueeze(-3)
        return a, b, rest, means, solution, symmetric(from_outputs)

    a, b, rest, means, solution, from_outputs = terms(z, weights, target, q)
    adjoint, adjoints = torch.zeros_like(target), []  # A_{t+1}, from the last row to the first
    for e, u, w, g in zip(*(x.unbind(-3)[::-1] for x in (rest, means, solution, symmetric(grad)))):
        adjoints.append(adjoint)
        e_a = e.mT @ adjoint
        adjoint = g + b[..., 0, :, :] * adjoint + a[..., 0, :, :] * (e_a @ e + 2 * symmetric(e_a @ u @ w.mT))
    transposed, tangents = symmetric(d_initial), []  # B_t
    for e, u, w, x in zip(*(x.unbind(-3) for x in (rest, means, solution, from_outputs))):
        tangents.append(transposed)
        e_b = e @ transposed
        transposed = x + b[..., 0, :, :] * transposed + a[..., 0, :, :] * (e_b @ e.mT + 2 * symmetric(e_b @ w @ u.mT))
    if not tangents:
        return tuple(torch.zeros_like(x) for x in (grad, z, weights, target, q))
    later, d_grad = torch.stack(adjoints[::-1], -3), torch.stack(tangents, -3)

    def total(z: Tensor, weights: Tensor, target: Tensor, q: Tensor) -> Tensor:
        a, b, rest, means, solution, from_outputs = terms(z, weights, target, q)
        e_b = rest @ d_grad
        through_adjoint = b * d_grad + a * (e_b @ rest.mT + 2 * e_b @ solution @ means.mT)
        return (later * (from_outputs + through_adjoint)).sum()

    one = torch.ones((), dtype=q.dtype, device=q.device)
    return d_grad, *vjp(total, (z, weights, target, q), one)


def _function(grad: Tensor, z: Tensor, weights: Tensor, target: Tensor, q: Tensor) -> Tensor:
    gradients: Tensor = operator(grad, z, weights, target, q)
    return gradients


def example_parameters(generator: torch.Generator) -> tuple[Tensor, ...]:
    """z (2, 5, 3), the same with gaps, weights, and two covariance matrices (2, 3, 3) that are exact in bfloat16."""
    z = torch.randn(2, 5, 3, dtype=torch.double, generator=generator)
    gaps = z.clone()
    gaps[0, 0, 0] = gaps[0, 1:3, 1] = gaps[0, 2, 2] = gaps[1, 1] = gaps[1, 3, 2] = torch.nan
    weights = torch.tensor([[0.125, 0.75], [0.25, 0.5]], dtype=torch.double)
    first = torch.tensor([[1.0, 0.5, 0.25], [0.5, 1.25, -0.25], [0.25, -0.25, 0.75]], dtype=torch.double)
    second = torch.tensor([[1.5, -0.5, 0.0], [-0.5, 1.0, 0.375], [0.0, 0.375, 1.0]], dtype=torch.double)
    return z, gaps, weights, torch.stack([first, second]), torch.stack([second, first])


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    _, gaps, weights, target, initial = (x[..., :4, :] for x in example_parameters(generator))
    grad, noise = torch.randn(2, 2, 4, 3, 3, dtype=torch.double, generator=generator)
    q = initial.unsqueeze(1) + 0.1 * noise @ noise.mT
    return Cases(function=_function, samples=(Sample(grad, gaps, weights, target, q),))


operator = Op(
    "commodity::dcc_correlation_backward", reference=_reference, fake=_fake, backward=_backward, cases=_cases, time=None
)
