"""Maximum likelihood estimation of GARCH(1,1) and GJR-GARCH for many series at once."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from torch_opkit.arguments import check_panel, raise_invalid
from torchcommodity.ops._volatility import bounded_newton
from torchcommodity.ops._volatility.estimation_device import of_all_problems, to_float64, to_panel
from torchcommodity.ops._volatility.garch_likelihood import Likelihood, derivatives_by_inverse_nu

MESSAGES = (
    "converged",
    "maximum number of iterations reached; the estimates are the best so far",
    "no step increased the likelihood; the estimates are the best so far",
    "no finite returns",
    "too few finite returns; at least 10 per parameter are needed",
    "returns are constant",
    "a return is infinite",
)
NO_RETURNS, TOO_FEW, CONSTANT, INFINITE = 3, 4, 5, 6


@dataclass(frozen=True)
class GarchFit:
    """Estimates of `garch_fit` for each series (..., N), named as the arguments of `garch_variance`."""

    omega: Tensor
    alpha: Tensor
    beta: Tensor
    gamma: Tensor  # 0 unless asymmetric
    nu: Tensor  # degrees of freedom of Student's t; infinity for the normal distribution
    initial: Tensor  # h of the first return
    loglikelihood: Tensor
    converged: Tensor  # bool
    status: Tensor  # int64; 0 is converged, `messages` describes the others
    iterations: Tensor  # int64
    standard_error: dict[str, Tensor]  # of each estimated parameter

    def messages(self) -> list[str]:
        """Description of the status of each series, in the order of `status.flatten()`."""
        return [MESSAGES[i] for i in self.status.flatten().tolist()]


def garch_fit(
    returns: Tensor,  # (..., T, N)
    *,
    asymmetric: bool = False,
    distribution: str = "normal",
) -> GarchFit:
    """Fit GARCH(1,1) or GJR-GARCH to each series by maximum likelihood: r_t = sqrt(h_t) z_t, h as in `garch_variance`.

    The model is that of the arch package with mean="Zero"; subtract a mean first if there is one. As in arch, the
    recursion starts from a backcast, the exponentially weighted mean (0.94) of the first 75 squared returns, in place
    of both the variance and the squared return before the first row. Bounds are those of arch: omega > 0, alpha >= 0,
    alpha + gamma >= 0, beta >= 0, alpha + gamma/2 + beta <= 1, and 2.05 <= nu <= 500. Newton's method with analytic
    second derivatives starts from the best point of a small grid.

    Args:
        returns: Log-returns per step in any unit; they are rescaled to unit variance for the fit. NaN is a missing
            return. Rows before the first return are dropped; a later missing return is replaced by its expectation in
            the variance (see `garch_variance`) and adds nothing to the likelihood.
        asymmetric: Estimate `gamma`, the extra weight of negative returns (GJR-GARCH).
        distribution: Distribution of z_t: "normal", or "t" for Student's t with unit variance and `nu` degrees of
            freedom.

    Returns:
        `GarchFit`, in float64; in float32 on a device without float64. A series that cannot be fitted, such as a
        constant one, has NaN estimates, converged=False and a message; it does not change the results of the other
        series. Standard errors are robust (the Bollerslev-Wooldridge sandwich, arch's default); they are NaN where the
        Hessian of the log-likelihood is not negative definite, which may happen at a bound. Not differentiable.

    Raises:
        ValueError, TypeError: If `returns` is not a floating-point panel, or `distribution` is unknown.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Without float64 (MPS) the fit runs on the CPU, in
    float64 as everywhere, and its estimates return to the device of `returns`, rounded.

    References:
        Bollerslev, Wooldridge (1992). Quasi-maximum likelihood estimation and inference in dynamic models with
        time-varying covariances. Econometric Reviews 11(2). doi:10.1080/07474939208800229

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> noise = torch.randn(500, 2, generator=torch.Generator().manual_seed(0))
        >>> fit = ops.garch_fit(torch.cat([noise, torch.full((500, 1), 0.5)], 1))
        >>> fit.messages()
        ['converged', 'converged', 'returns are constant']
    """
    check_panel("garch_fit", returns=returns)
    if distribution not in ("normal", "t"):
        raise_invalid("garch_fit", 'distribution must be "normal" or "t"', distribution=distribution)
    batch, assets = returns.shape[:-2], returns.shape[-1]
    panel = to_float64(returns).movedim(-2, 0).reshape(returns.shape[-2], math.prod(batch) * assets)
    model = Likelihood(asymmetric, distribution == "t")
    panel, scale, backcast, count, status = _prepare(panel, len(model.names))
    valid = (status < 0).nonzero().squeeze(1)
    fit = _maximize(panel[:, valid], backcast[valid], count[valid], model)
    fit["omega"], fit["error_omega"] = (fit[x] * scale[valid] ** 2 for x in ("omega", "error_omega"))
    fit["initial"] = fit["initial"] * scale[valid] ** 2
    fit["loglikelihood"] = fit["loglikelihood"] - count[valid] * scale[valid].log()
    fit = to_panel(of_all_problems(fit, valid, status, scale), returns)
    fit = {name: x.reshape(*batch, assets) for name, x in fit.items()}
    errors = {name: fit.pop(f"error_{name}") for name in model.names}
    return GarchFit(**fit, standard_error=errors)


def _prepare(returns: Tensor, parameters: int) -> tuple[Tensor, ...]:
    """The panel at unit scale, each series from its first return on; scale, backcast, count; status, -1 if valid."""
    missing = returns.isnan()
    any_missing = bool(missing.any())  # most panels have none: skip the passes that handle them
    if any_missing:  # each series moves up to start with its first return, and NaN fills the end
        rows = torch.arange(len(returns), device=returns.device).unsqueeze(1) + missing.int().argmin(0)
        returns = torch.where(rows < len(returns), returns.gather(0, rows.clamp(max=len(returns) - 1)), torch.nan)
        missing = returns.isnan()
    count = len(returns) - missing.sum(0)
    filled = torch.where(missing, 0, returns) if any_missing else returns
    scale = (filled.square().sum(0) / count.clamp(min=1)).sqrt()
    status = torch.where(count < 10 * parameters, TOO_FEW, -1)
    if len(returns):
        low, high = (torch.where(missing, returns[0], returns) if any_missing else returns).aminmax(dim=0)
        status = torch.where((status < 0) & (low == high), CONSTANT, status)
    status = torch.where(scale.isinf(), INFINITE, status).masked_fill(count == 0, NO_RETURNS)
    weights = 0.94 ** torch.arange(len(returns[:75]), dtype=scale.dtype, device=scale.device).unsqueeze(1)
    weights = weights * ~missing[:75]
    unit = returns / torch.where(scale > 0, scale, 1)
    backcast = (weights * filled[:75].square()).sum(0) / weights.sum(0) / scale**2
    return unit, scale, backcast, count, status


def _maximize(panel: Tensor, backcast: Tensor, count: Tensor, model: Likelihood) -> dict[str, Tensor]:
    """Maximum likelihood of each column of a panel at unit scale."""
    active, active_panel = torch.arange(panel.shape[1], device=panel.device), panel

    def objective(x: Tensor, columns: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        nonlocal active, active_panel
        if not torch.equal(columns, active):  # converged series leave the panel
            active, active_panel = columns, panel.index_select(1, columns)
        value, gradient, hessian, _ = model.statistics(active_panel, count[columns], backcast[columns], x)
        if model.student:
            gradient, hessian = derivatives_by_inverse_nu(gradient, hessian, 1 / x[:, -1])
        return -value, -gradient, hessian

    bounds, limits = model.bounds(panel)
    x = panel.new_tensor(model.starts())
    values = torch.stack([model.value(panel, count, backcast, point.expand(panel.shape[1], -1)) for point in x])
    solution = bounded_newton.minimize(objective, x[values[1:].argmax(0) + 1], bounds, limits)
    gain = -solution.value - values[0]
    for max_gain, start in model.fallback_starts():
        weak, x = (gain < max_gain).nonzero().squeeze(1), panel.new_tensor(start)
        retry = bounded_newton.minimize(objective, x, bounds, limits, index=weak)
        solution = bounded_newton.merge_better(solution, retry)
    x = solution.x
    omega, alpha, alpha_negative, beta = model.parameters(x)
    estimates = {
        "omega": omega,
        "alpha": alpha,
        "beta": beta,
        "gamma": alpha_negative - alpha,
        "nu": 1 / x[:, -1] if model.student else torch.full_like(omega, torch.inf),
        "initial": omega + ((alpha + alpha_negative) / 2 + beta) * backcast,
        "status": solution.status.to(x),
        "iterations": solution.iterations.to(x),
        "loglikelihood": -solution.value,
    }
    errors = _standard_errors(model, count, *model.statistics(panel, count, backcast, x)[1:])
    return estimates | {f"error_{name}": error for name, error in zip(model.names, errors)}


def _standard_errors(model: Likelihood, count: Tensor, gradient: Tensor, information: Tensor, outer: Tensor) -> Tensor:
    """(P, n), of `model.names`: the sandwich H^-1 S H^-1, with S the covariance of the scores."""
    n = count.to(gradient)[:, None, None]
    score_covariance = (outer - gradient.unsqueeze(1) * gradient.unsqueeze(2) / n) * (n / (n - 1))
    inverse, singular = torch.linalg.inv_ex(information)
    covariance = inverse @ score_covariance @ inverse
    if model.asymmetric:  # gamma is the difference of the two alphas
        jacobian = torch.eye(len(model.names), dtype=gradient.dtype, device=gradient.device)
        jacobian[2, 1] = -1
        covariance = jacobian @ covariance @ jacobian.T
    variances = covariance.diagonal(dim1=1, dim2=2).masked_fill(singular.unsqueeze(1) > 0, torch.nan)
    errors: Tensor = variances.sqrt().T
    return errors
