"""Maximum likelihood estimation of DCC(1,1) for many panels at once."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from torch_opkit.arguments import check_panel, raise_invalid
from torchcommodity.ops._correlation.dcc_score import operator as dcc_score
from torchcommodity.ops._volatility import bounded_newton
from torchcommodity.ops._volatility.estimation_device import of_all_problems, to_float64, to_panel

MESSAGES = (
    "converged",
    "maximum number of iterations reached; the estimates are the best so far",
    "no step increased the likelihood; the estimates are the best so far",
    "a series has no finite residuals",
    "too few rows; at least 20 are needed",
    "the target is not positive definite: series are collinear, or have too few rows in common",
    "a residual is infinite",
)
NO_RESIDUALS, TOO_FEW, NOT_DEFINITE, INFINITE = 3, 4, 5, 6
MIN_ROWS = 20  # 10 for each parameter, as `garch_fit`
MAX_PERSISTENCE = 1 - 1e-6  # of a + b
STARTS = ((0.02, 0.95), (0.005, 0.99), (0.05, 0.9), (0.1, 0.8), (0.05, 0.5))


@dataclass(frozen=True)
class DccFit:
    """Estimates of `dcc_fit` for each panel (...), named as the arguments of `dcc_correlation`."""

    a: Tensor
    b: Tensor
    target: Tensor  # (..., N, N)
    loglikelihood: Tensor
    converged: Tensor  # bool
    status: Tensor  # int64; 0 is converged, `messages` describes the others
    iterations: Tensor  # int64
    standard_error: dict[str, Tensor]  # of a and b

    def messages(self) -> list[str]:
        """Description of the status of each panel, in the order of `status.flatten()`."""
        return [MESSAGES[i] for i in self.status.flatten().tolist()]


def dcc_fit(
    z: Tensor,  # (..., T, N)
) -> DccFit:
    """Fit DCC(1,1) to each panel by maximum likelihood: z_t is normal with the correlation R_t of `dcc_correlation`.

    This is the second step of Engle's two-step estimation; `garch_fit` is the first. The target is not searched but set
    to the mean of z z' (correlation targeting), where each pair of series uses the rows that have both. Bounds are
    a >= 0, b >= 0 and a + b < 1. Fisher scoring with analytic derivatives starts from the best point of a small grid.

    Args:
        z: Standardized residuals (dimensionless) of at least two series, such as returns / `garch_variance` ** 0.5; NaN
            is missing. A row counts with the density of the residuals that it has, and passes through the recursion as
            in `dcc_correlation`.

    Returns:
        `DccFit`, in float64; in float32 on a device without float64. The log-likelihood is that of z: subtract the sum
        of ln h_t / 2 for that of the returns. A panel that cannot be fitted has NaN estimates, converged=False and a
        message; it does not change the results of the other panels. Standard errors are robust (the
        Bollerslev-Wooldridge sandwich) but take residuals and target as known; they are NaN where the Hessian is not
        negative definite, as it may be at a bound. Not differentiable.

    Raises:
        ValueError, TypeError: If `z` is not a floating-point panel of at least two series.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Without float64 (MPS) the fit runs on the CPU, in
    float64 as everywhere, and its estimates return to the device of `z`, rounded.

    References:
        Engle (2002). Dynamic conditional correlation. Journal of Business and Economic Statistics 20(3).
        doi:10.1198/073500102288618487

        Engle, Sheppard (2001). Theoretical and empirical properties of dynamic conditional correlation multivariate
        GARCH. doi:10.3386/w8554

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> z = torch.randn(2, 500, 3, generator=torch.Generator().manual_seed(0))
        >>> z[1, :, 2] = z[1, :, 0]
        >>> ops.dcc_fit(z).messages()[1]
        'the target is not positive definite: series are collinear, or have too few rows in common'
    """
    check_panel("dcc_fit", z=z)
    batch, assets = z.shape[:-2], z.shape[-1]
    if assets < 2:
        raise_invalid("dcc_fit", "z must have at least two series", z=z)
    panels = to_float64(z).reshape(math.prod(batch), *z.shape[-2:])
    target, status = _prepare(panels)
    valid = (status < 0).nonzero().squeeze(1)
    fit = of_all_problems(_maximize(panels[valid], target[valid]), valid, status, target[:, 0, 0])
    fit = {name: x.reshape((*batch, *x.shape[1:])) for name, x in to_panel(fit | {"target": target}, z).items()}
    errors = {name: fit.pop(f"error_{name}") for name in ("a", "b")}
    return DccFit(**fit, standard_error=errors)


def _prepare(panels: Tensor) -> tuple[Tensor, Tensor]:
    """Mean of z z' over the rows that each pair has in common (n, N, N), NaN if invalid; status, -1 if valid."""
    observed = ~panels.isnan()
    x, common = torch.where(observed, panels, 0), observed.double()
    target = (x.mT @ x) / (common.mT @ common)
    definite = torch.linalg.cholesky_ex(target.nan_to_num(0, 0, 0)).info == 0
    diagonal = target.diagonal(dim1=-2, dim2=-1)
    scaled = target / (diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)).sqrt()
    definite &= torch.linalg.eigvalsh(scaled.nan_to_num(0, 0, 0)).amin(-1) > 1e-10  # collinear but for rounding
    status = torch.where(definite & target.isfinite().flatten(1).all(1), -1, NOT_DEFINITE)
    status = status.masked_fill(observed.any(-1).sum(-1) < MIN_ROWS, TOO_FEW)
    status = status.masked_fill(panels.isinf().flatten(1).any(1), INFINITE)
    status = status.masked_fill(~observed.any(-2).all(-1), NO_RESIDUALS)
    return torch.where((status < 0)[:, None, None], target, torch.nan), status


def _maximize(panels: Tensor, target: Tensor) -> dict[str, Tensor]:
    """Maximum likelihood of each panel (n, T, N)."""

    def statistics(x: Tensor, index: Tensor, derivatives: bool = True) -> Tensor:
        sums: Tensor = dcc_score(panels[index], x.contiguous(), target[index], derivatives)
        return sums

    def objective(x: Tensor, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        sums = statistics(x, index)
        return -sums[:, 0], -sums[:, 1:3], _symmetric(sums[:, 3:6])

    every = torch.arange(len(panels), device=panels.device)
    starts = panels.new_tensor(STARTS)
    values = torch.stack([statistics(x.expand(len(panels), -1), every, False)[:, 0] for x in starts])
    bounds, limits = panels.new_tensor([[1, 0], [0, 1], [-1, -1]]), panels.new_tensor([0, 0, -MAX_PERSISTENCE])
    solution = bounded_newton.minimize(objective, starts[values.argmax(0)], bounds, limits)
    errors = _standard_errors(solution.x, lambda x: statistics(x, every))
    return {
        "a": solution.x[:, 0],
        "b": solution.x[:, 1],
        "loglikelihood": -solution.value,
        "status": solution.status.to(panels),
        "iterations": solution.iterations.to(panels),
        "error_a": errors[:, 0],
        "error_b": errors[:, 1],
    }


def _standard_errors(x: Tensor, statistics: Callable[[Tensor], Tensor]) -> Tensor:
    """(n, 2): the sandwich H^-1 S H^-1, with the Hessian H by central differences of the analytic scores."""
    sums, step = statistics(x), 1e-5
    shifts = step * torch.eye(2, dtype=x.dtype, device=x.device)
    columns = [(statistics(x + shift)[:, 1:3] - statistics(x - shift)[:, 1:3]) / (2 * step) for shift in shifts]
    hessian = torch.stack(columns, -1)
    hessian = (hessian + hessian.mT) / 2
    inverse, singular = torch.linalg.inv_ex(hessian)
    covariance = inverse @ _symmetric(sums[:, 6:9]) @ inverse
    definite = (torch.linalg.eigvalsh(hessian).amax(-1) < 0) & (singular == 0)
    errors: Tensor = covariance.diagonal(dim1=-2, dim2=-1).sqrt()
    return errors.masked_fill(~definite.unsqueeze(-1), torch.nan)


def _symmetric(triangle: Tensor) -> Tensor:
    """(n, 2, 2) from aa, ab and bb (n, 3)."""
    matrices: Tensor = triangle[:, [0, 1, 1, 2]].unflatten(-1, (2, 2))
    return matrices
