"""y = gamma (x - m) / sqrt(v + eps) + beta, with the mean m and the variance v of the batch.

For one feature let x_1 ... x_B be the batch, r = 1 / sqrt(v + eps), n_b = (x_b - m) r, g = dL/dy, and

    m = 1/B sum x_b,    v = 1/B sum (x_b - m)^2

The gradients of the parameters are dL/dgamma = sum g_b n_b and dL/dbeta = sum g_b.

L depends on x in three ways: directly, through the mean, and through the variance. With h = gamma g = dL/dn,

    dL/dv = sum h_b (x_b - m) dr/dv = -r^3/2 sum h_b (x_b - m) = -r^2/2 sum h_b n_b      (+ incoming dL/dv)
    dL/dm = -r sum h_b + dL/dv dv/dm = -r sum h_b     (dv/dm = -2/B sum (x_b - m) = 0)    (+ incoming dL/dm)
    dL/dx_b = r h_b + dL/dm / B + dL/dv 2 (x_b - m) / B
            = r (h_b - mean(h) - n_b mean(h n))            + incoming terms dm / B + 2 (x_b - m) dv / B

The subtracted terms are the components of h along 1 and along n: adding a constant to x, or scaling it, does not change
y. m and v are outputs, because a running average needs them, so the backward pass can use them: two numbers for each
feature instead of the batch n, which is computed again from x.

The mean and variance are statistics of the whole batch: `time=None`, `vmap="loop"`.
"""

import sys

import torch
from torch import Tensor
from torch.nn import functional as F

import torch_opkit as opkit
from torch_opkit import Bad, Cases, Op, Sample
from torch_opkit.arguments import raise_invalid

Output = tuple[Tensor, Tensor, Tensor]


def batch_norm(
    x: Tensor,  # (B, features)
    gamma: Tensor,  # (features,)
    beta: Tensor,  # (features,)
    eps: float = 1e-5,
) -> Output:  # (B, features), (features,), (features,)
    """Batch normalization as in training: normalized batch, mean and biased variance.

    Example:
        >>> y, mean, variance = batch_norm(torch.tensor([[1.0], [3.0]]), torch.ones(1), torch.zeros(1), eps=1e-12)
        >>> y.flatten().tolist(), mean.item(), variance.item()
        ([-1.0, 1.0], 2.0, 1.0)
    """
    if x.dim() != 2 or gamma.shape != x.shape[1:] or beta.shape != x.shape[1:]:
        raise_invalid("batch_norm", "x must be (B, features), gamma and beta (features,)", x=x, gamma=gamma, beta=beta)
    if x.shape[0] < 2:
        raise_invalid("batch_norm", "x must have at least two rows: one has no variance", x=x)
    output: Output = operator(x, gamma, beta, eps)
    return output


def _reference(x: Tensor, gamma: Tensor, beta: Tensor, eps: float) -> Output:
    mean = x.mean(0)
    variance = (x - mean).square().mean(0)
    return gamma * (x - mean) * (variance + eps).rsqrt() + beta, mean, variance


def _fake(x: Tensor) -> Output:
    return x.new_empty(x.shape), x.new_empty(x.shape[1:]), x.new_empty(x.shape[1:])


def _backward(
    grad: Tensor, d_mean: Tensor, d_variance: Tensor, *, x: Tensor, gamma: Tensor, eps: float, output: Output
) -> Output:
    # dL/dx = r (h - mean(h) - n mean(h n)) + (dm + 2 (x - m) dv) / B,  dL/dgamma = sum g n,  dL/dbeta = sum g
    _, mean, variance = output
    centered = x - mean
    r = (variance + eps).rsqrt()
    n, h = centered * r, gamma * grad
    d_x = r * (h - h.mean(0) - n * (h * n).mean(0)) + (d_mean + 2 * centered * d_variance) / x.shape[0]
    return d_x, (grad * n).sum(0), grad.sum(0)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x, gamma, beta = (torch.randn(shape, dtype=torch.double, generator=generator) for shape in ((6, 4), (4,), (4,)))
    return Cases(
        batch_norm,
        samples=(Sample(x, gamma, beta, eps=1e-5), Sample(3 * x, gamma, beta, eps=0.1)),
        bad=(
            Bad(Sample(x, gamma[:3], beta), r"batch_norm: x must be .*; got x \(6, 4\), gamma \(3,\), beta \(4,\)"),
            Bad(Sample(x[:1], gamma, beta), "batch_norm: x must have at least two rows"),
        ),
        oracle=_oracle,
    )


def _oracle(x: Tensor, gamma: Tensor, beta: Tensor, eps: float) -> Output:
    y = F.batch_norm(x, None, None, gamma, beta, training=True, eps=eps)
    return y, x.mean(0), x.var(0, correction=0)


operator = Op(
    "examples::batch_norm",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    cases=_cases,
    time=None,
    vmap="loop",
)

if __name__ == "__main__":
    report = opkit.check(operator)
    print(report)
    sys.exit(not report.ok)
