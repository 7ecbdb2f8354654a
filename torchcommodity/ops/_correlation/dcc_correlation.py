"""Dynamic conditional correlation: Q_{t+1} = (1 - a - b) target + a z_t z_t' + b Q_t, scaled to a unit diagonal."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from torch_opkit import Bad, Cases, Golden, Op, Past, Sample, live
from torch_opkit.arguments import check_panel, check_values, raise_invalid
from torchcommodity.ops._correlation.dcc_correlation_backward import example_parameters, split_gradients
from torchcommodity.ops._correlation.dcc_correlation_backward import operator as backward
from torchcommodity.ops._correlation.sweep import regress, symmetric
from torchcommodity.ops._volatility.parameters import broadcast_parameter

Parameter = Tensor | float


def _update(
    past: Past,
    z: Tensor,
    a: Parameter,
    b: Parameter,
    target: Tensor,
    initial: Tensor | None = None,
    normalize: bool = True,
) -> Tensor:
    if (weights := past.get("weights")) is None:
        weights, mean, previous = check_parameters("dcc_correlation", z, a, b, target, initial)
        past.keep("weights", weights)
        past.keep("mean", mean.clone())
    else:
        mean, previous = past.tensors["mean"], past.tensors["q"]
    # Q of the row after the last follows from one more row, whatever it holds
    rows = pad(z, (0, 0, 0, 1)).to(previous)
    q: Tensor = operator(rows, weights, mean, previous)
    past.keep("q", q[..., -1, :, :].clone())
    q = q[..., :-1, :, :]
    return (normalize_covariance(q) if normalize else q).to(z.dtype)


@live(_update, outputs=-3)
def dcc_correlation(
    z: Tensor,  # (..., T, N)
    a: Parameter,  # (...)
    b: Parameter,  # (...)
    target: Tensor,  # (..., N, N)
    initial: Tensor | None = None,  # (..., N, N)
    *,
    normalize: bool = True,
) -> Tensor:  # (..., T, N, N)
    """Dynamic conditional correlation (DCC) of the residuals of each row given the rows before it.

    Q_{t+1} = (1 - a - b) target + a z_t z_t' + b Q_t with Q_0 = `initial`, and R_t = Q_t scaled to a unit diagonal. R_t
    depends on residuals up to z_{t-1}, as h_t of `garch_variance` does.

    Args:
        z: Standardized residuals (dimensionless), such as returns / `garch_variance` ** 0.5; NaN is missing.
        a: Weight of the last residuals (dimensionless), >= 0; one number for each panel.
        b: Weight of the last Q (dimensionless), >= 0, with a + b < 1.
        target: Mean of z z' (dimensionless), symmetric and positive definite. `dcc_fit` returns that of its sample;
            with one of all rows, the first rows know about the last.
        initial: Q_0, symmetric and positive definite. None means `target`.
        normalize: Return R. If False, return Q, whose next row is the `initial` of a continuation.

    Returns:
        R, or Q, in the dtype of `z`. Causal, no warm-up. At a row with missing residuals, z z' is replaced by its
        expectation under covariance Q_t, given the residuals that are there: R stays positive definite, and a row that
        is missing altogether counts as Q_t. The gradient of a missing residual is 0.

    Raises:
        ValueError, TypeError: If `z` is not a floating-point panel, a parameter does not broadcast to its shape or is
            out of range. Where values cannot be read (`torch.compile`, `torch.export`, `torch.func`), invalid panels
            are NaN instead.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Differentiable in all tensors, to any order, in
    reverse and forward mode.

    References:
        Engle (2002). Dynamic conditional correlation. Journal of Business and Economic Statistics 20(3).
        doi:10.1198/073500102288618487

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> z = torch.tensor([[1.0, 1.0], [2.0, -2.0], [0.0, 0.0]])
        >>> ops.dcc_correlation(z, a=0.1, b=0.8, target=torch.eye(2))[:, 0, 1]
        tensor([ 0.0000,  0.1000, -0.2462])
    """
    q: Tensor = operator(z, *check_parameters("dcc_correlation", z, a, b, target, initial))
    return (normalize_covariance(q) if normalize else q).to(z.dtype)


def check_parameters(
    name: str, z: Tensor, a: Parameter, b: Parameter, target: Tensor, initial: Tensor | None
) -> list[Tensor]:
    """Weights a, b as (..., 2), target and initial as (..., N, N), checked."""
    check_panel(name, z=z)
    if not z.shape[-1]:
        raise_invalid(name, "z must have at least one series", z=z)
    arguments = {"a": a, "b": b, "target": target} | ({} if initial is None else {"initial": initial})
    number, matrix = ("(...)", z.shape[:-2]), ("(..., N, N)", (*z.shape[:-2], z.shape[-1], z.shape[-1]))
    axes = {"a": number, "b": number, "target": matrix, "initial": matrix}
    tensors = {key: broadcast_parameter(name, key, value, *axes[key], z=z) for key, value in arguments.items()}
    rules = {"a must be >= 0": tensors["a"] >= 0, "b must be >= 0": tensors["b"] >= 0}
    rules["a + b must be < 1"] = tensors["a"] + tensors["b"] < 1
    matrices = {key: tensors[key] for key in ("target", "initial") if key in tensors}
    definite = _is_definite(torch.stack(list(matrices.values()))).unbind(0)
    for (key, value), is_definite in zip(matrices.items(), definite):
        rules[f"{key} must be symmetric and positive definite"] = _is_symmetric(value, arguments[key]) & is_definite
    valid = check_values(name, rules, **tensors, z=z)
    start = tensors["initial" if initial is not None else "target"]
    if valid is not None:
        start = torch.where(valid[..., None, None], start, torch.nan)
    return [torch.stack([tensors["a"], tensors["b"]], -1), tensors["target"], start]


def _is_symmetric(matrix: Tensor, argument: Parameter) -> Tensor:
    """(...): symmetric up to rounding in the dtype of the argument."""
    dtype = argument.dtype if isinstance(argument, Tensor) else matrix.dtype
    tolerance = max(1e-4, 2 * torch.finfo(dtype).eps if dtype.is_floating_point else 0)
    size = matrix.diagonal(dim1=-2, dim2=-1).abs().sum(-1)
    return ((matrix - matrix.mT).abs() <= tolerance * size[..., None, None]).all(-1).all(-1)


def _is_definite(matrix: Tensor) -> Tensor:
    """(...): positive definite and finite, by elimination, since ONNX has no linear algebra."""
    rest, pivots = symmetric(matrix.detach()), []
    for _ in range(matrix.shape[-1]):
        pivots.append(rest[..., 0, 0])
        row = rest[..., :1, 1:] / rest[..., :1, :1]
        rest = torch.addcmul(rest[..., 1:, 1:], rest[..., 1:, :1], row, value=-1)
    pivot = torch.stack(pivots, -1)
    return ((pivot > 0) & (pivot < torch.inf)).all(-1)


def normalize_covariance(q: Tensor) -> Tensor:
    """Correlations of covariances (..., N, N); the square root of a square is exact, and so is the diagonal."""
    variance = q.diagonal(dim1=-2, dim2=-1)
    return q / (variance.unsqueeze(-1) * variance.unsqueeze(-2)).sqrt()


def _reference(
    z: Tensor,  # (..., T, N)
    weights: Tensor,  # (..., 2): a, b
    target: Tensor,  # (..., N, N)
    initial: Tensor,  # (..., N, N)
) -> Tensor:  # Q (..., T, N, N)
    a, b = weights[..., 0, None, None], weights[..., 1, None, None]
    intercept, q, rows = (1 - a - b) * symmetric(target), symmetric(initial), []
    for row in z.unbind(-2):
        rows.append(q)
        _, _, u, covariance, _ = regress(q, row)
        q = intercept + a * (u.unsqueeze(-1) * u.unsqueeze(-2) + covariance) + b * q
    return torch.stack(rows, -3) if rows else z.new_empty((*z.shape, z.shape[-1]))


def _fake(z: Tensor) -> Tensor:
    return z.new_empty((*z.shape, z.shape[-1]))


def _backward(grad: Tensor, *, z: Tensor, weights: Tensor, target: Tensor, output: Tensor) -> tuple[Tensor, ...]:
    return split_gradients(backward(grad, z, weights, target, output), z)


def _oracle(
    z: Tensor, a: Parameter, b: Parameter, target: Tensor, initial: Tensor | None = None, normalize: bool = True
) -> Tensor:
    """A loop in numpy; a missing block is the conditional expectation by the textbook's formula."""
    import numpy as np

    shape = (*z.shape[:-2], z.shape[-1], z.shape[-1])
    start = target if initial is None else initial
    panels = z.reshape(-1, *z.shape[-2:]).numpy()
    matrices = [x.expand(shape).reshape(-1, *shape[-2:]).numpy() for x in (target, start)]
    weights = [torch.as_tensor(x, dtype=torch.double).expand(shape[:-2]).reshape(-1).tolist() for x in (a, b)]
    result = np.empty((*panels.shape, panels.shape[-1]))
    for i, (x, goal, q, alpha, beta) in enumerate(zip(panels, *matrices, *weights)):
        for t, row in enumerate(x):
            scale = np.sqrt(np.diag(q)) if normalize else np.ones(len(q))
            result[i, t] = q / np.outer(scale, scale)
            o, m = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
            filled, extra = row.copy(), np.zeros_like(q)
            slope = q[np.ix_(m, o)] @ np.linalg.inv(q[np.ix_(o, o)])
            filled[m] = slope @ row[o]
            extra[np.ix_(m, m)] = q[np.ix_(m, m)] - slope @ q[np.ix_(o, m)]
            q = (1 - alpha - beta) * goal + alpha * (np.outer(filled, filled) + extra) + beta * q
    return torch.from_numpy(result).reshape(*z.shape, z.shape[-1])


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    z, gaps, weights, target, initial = example_parameters(generator)
    a, b = weights.unbind(-1)
    long = torch.randn(2, 300, 4, dtype=torch.double, generator=generator)
    long[torch.rand(long.shape, generator=generator) < 0.2] = torch.nan
    identity = torch.eye(2, dtype=torch.double)
    golden = identity.repeat(3, 1, 1)
    golden[1, 0, 1] = golden[1, 1, 0] = 0.1
    golden[2, 0, 1] = golden[2, 1, 0] = -0.32 / 1.3
    not_definite = torch.tensor([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]]).double()
    return Cases(
        function=dcc_correlation,
        samples=(
            Sample(z, a, b, target, initial),
            Sample(gaps, a, b, target, normalize=False),
            Sample(gaps, a[:1], b, target[0]),
        ),
        bad=(
            Bad(Sample(z[0, 0], a, b, target), r"dcc_correlation: z must be \(\.\.\., T, N\)"),
            Bad(Sample(z, target=target, a=-0.1, b=0.8), "a must be >= 0; got a=-0.1"),
            Bad(Sample(z, target=target, a=0.1, b=-0.8), "b must be >= 0; got b=-0.8"),
            Bad(Sample(z, target=target, a=0.1, b=0.9), r"a \+ b must be < 1; got a=0.1, b=0.9"),
            Bad(Sample(z, a, b, not_definite), "target must be symmetric and positive definite; got target"),
            Bad(Sample(z, a, b, target, not_definite), "initial must be symmetric and positive definite; got initial"),
            Bad(Sample(z, a, b, target[..., :2]), r"target must broadcast to \(\.\.\., N, N\); got target \(2, 3, 2\)"),
            Bad(Sample(z, a, b[:1].expand(3), target), r"b must broadcast to \(\.\.\.\); got b \(3,\), z"),
        ),
        golden=(
            Golden(
                Sample(torch.tensor([[1.0, 1.0], [2.0, -2.0], [0.0, 0.0]]).double(), target=identity, a=0.1, b=0.8),
                golden,
                "by hand: Q_1 = [1, 0.1], Q_2 = [0.1 + 0.4 + 0.8, -0.4 + 0.08]",
            ),
        ),
        oracle=_oracle,
        oracle_samples=(
            Sample(gaps, a, b, target, initial),
            Sample(long, target=torch.eye(4, dtype=torch.double) * 0.75 + 0.25, a=0.05, b=0.9),
        ),
    )


operator = Op(
    "commodity::dcc_correlation", reference=_reference, fake=_fake, backward=_backward, cases=_cases, time=(-2, -3)
)
