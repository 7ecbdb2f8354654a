"""Hamilton filter of a Markov-switching model: filtered regime probabilities and log-likelihoods."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torch_opkit import Bad, Cases, Golden, Op, Past, Sample, has_float64, has_kernel, live
from torch_opkit.arguments import check_panel, check_values, raise_invalid
from torchcommodity.ops._scan.matrix_recurrence import operator as recur
from torchcommodity.ops._volatility.parameters import broadcast_parameter, float64_constant


class HamiltonFilter(NamedTuple):
    """Filtered regime probabilities and the log-likelihood of each row, of `hamilton_filter`."""

    probability: Tensor  # (..., T, K, N)
    loglikelihood: Tensor  # (..., T, N)


def _update(
    past: Past, returns: Tensor, mean: Tensor, variance: Tensor, transition: Tensor, initial: Tensor | None
) -> HamiltonFilter:
    names = ("regime_mean", "regime_variance", "regime_transition")
    native = has_kernel("commodity::hamilton_filter_step", returns.device)
    predicted = past.get("predicted")
    if predicted is None:
        *parameters, start = _parameters(returns, mean, variance, transition, initial)
        predicted = start.double() if native else start
        for name, value in zip(names, parameters):
            past.keep(name, value.clone(memory_format=torch.contiguous_format))
    step: Callable[..., Any] = torch.ops.commodity.hamilton_filter_step if native else _step
    parameters = [past.tensors[name] for name in names]
    y, predicted = step(returns.to(parameters[0]), *parameters, predicted)
    past.keep("predicted", predicted)
    return _outputs(y.to(returns.dtype))


@live(_update, outputs=(-3, -2))
def hamilton_filter(
    returns: Tensor,  # (..., T, N)
    mean: Tensor,  # (..., K, N)
    variance: Tensor,  # (..., K, N)
    transition: Tensor,  # (..., K, K, N)
    initial: Tensor | None = None,  # (..., K, N)
) -> HamiltonFilter:
    """Hamilton filter: probabilities of K regimes that follow a Markov chain, each with normal returns.

    p_t|t-1(j) = sum_i transition_ij p_t-1(i), then Bayes' rule: p_t(j) = p_t|t-1(j) f_j(r_t) / c_t, where f_j is the
    density of N(mean_j, variance_j) and c_t the sum of the numerators; ln c_t is the log-likelihood of the row.

    Args:
        returns: Log-returns per step; NaN is a missing return.
        mean: Mean of each regime, in units of `returns`; (K, 1) to share it among all series.
        variance: Variance (not volatility) of each regime, in squared units of `returns`, > 0.
        transition: [i, j] is the probability of regime j after regime i; rows sum to 1 (statsmodels uses the
            transpose). (K, K, 1) to share it among all series.
        initial: Regime probabilities before the first return; None means the stationary distribution of `transition`.

    Returns:
        `HamiltonFilter(probability, loglikelihood)`: p_t given the returns up to r_t, and ln f(r_t | past), which sums
        over time to the log-likelihood of the model. Causal, no warm-up. At a missing return there is no update:
        p_t = p_t|t-1, and the log-likelihood is 0.

    Raises:
        ValueError, TypeError: If `returns` is not a floating-point panel, a parameter does not broadcast to its shape,
            a variance is not positive, probabilities are negative or do not sum to 1, or `initial` is None and
            `transition` has more than one stationary distribution.
            Where values cannot be read (`torch.compile`, `torch.export`, `torch.func`), invalid series are NaN instead.

    Devices: CPU and CUDA, in float64 internally; elsewhere the reference in plain PyTorch. Differentiable in all
    tensors, to any order, in reverse and forward mode.

    References:
        Hamilton (1989). A new approach to the economic analysis of nonstationary time series and the business cycle.
        Econometrica 57(2). doi:10.2307/1912559

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> returns = torch.tensor([[0.1], [3.0], [float("nan")]])  # percent
        >>> variance = torch.tensor([[0.5], [4.0]])  # percent squared: a calm and a turbulent regime
        >>> transition = torch.tensor([[0.9, 0.1], [0.2, 0.8]]).unsqueeze(-1)
        >>> ops.hamilton_filter(returns, torch.zeros(2, 1), variance, transition).probability.squeeze(-1)
        tensor([[0.8487, 0.1513],
                [0.0041, 0.9959],
                [0.2029, 0.7971]])
    """
    y = operator(returns, *_parameters(returns, mean, variance, transition, initial))
    return _outputs(y.to(returns.dtype))


def _outputs(y: Tensor) -> HamiltonFilter:
    return HamiltonFilter(y[..., :-1, :].contiguous(), y[..., -1, :].contiguous())


def _parameters(
    returns: Tensor, mean: Tensor, variance: Tensor, transition: Tensor, initial: Tensor | None
) -> list[Tensor]:
    """mean, variance, transition and the probabilities before the first return, checked."""
    check_panel("hamilton_filter", returns=returns)
    if not isinstance(mean, Tensor) or mean.dim() < 2:
        raise_invalid("hamilton_filter", "mean must be a Tensor (..., K, N)", TypeError, mean=mean)
    regimes, arguments = mean.shape[-2], {"mean": mean, "variance": variance, "transition": transition}
    arguments |= {} if initial is None else {"initial": initial}
    batch, assets = returns.shape[:-2], returns.shape[-1]
    axes = dict.fromkeys(arguments, ("(..., K, N)", (*batch, regimes, assets)))
    axes["transition"] = ("(..., K, K, N)", (*batch, regimes, regimes, assets))
    tensors = {
        name: broadcast_parameter("hamilton_filter", name, x, *axes[name], returns=returns)
        for name, x in arguments.items()
    }
    stated_dtype = transition.dtype if isinstance(transition, Tensor) else returns.dtype
    start, rules = _initial_probability(**tensors, tolerance=max(1e-4, 2 * torch.finfo(stated_dtype).eps))
    valid = check_values("hamilton_filter", rules, **tensors, returns=returns)
    if valid is not None:
        tensors["variance"] = torch.where(valid.unsqueeze(-2), tensors["variance"], 1)
        start = torch.where(valid.unsqueeze(-2), start, torch.nan)
    return [tensors["mean"], tensors["variance"], tensors["transition"], start]


def _initial_probability(
    mean: Tensor, variance: Tensor, transition: Tensor, initial: Tensor | None = None, *, tolerance: float
) -> tuple[Tensor, dict[str, Tensor]]:
    """Regime probabilities before the first return, and for each rule the series (..., N) that satisfy it."""
    rows = transition if initial is None else torch.cat([transition, initial.unsqueeze(-3)], -3)
    sums_to_one, regimes = _sum_to_one(rows, tolerance), mean.shape[-2]
    rules = {
        "variance must be > 0": (variance > 0).all(-2),
        "transition must be >= 0 with rows that sum to 1": sums_to_one[..., :regimes, :].all(-2),
    }
    if initial is not None:
        return initial, rules | {"initial must be >= 0 and sum to 1": sums_to_one[..., regimes, :]}
    # p = P'p and 1'p = 1, so (I - P' + 11') p = 1
    chain = torch.eye(regimes, dtype=mean.dtype, device=mean.device) + 1 - transition.movedim(-1, -3).mT
    stationary, singular = torch.linalg.solve_ex(chain, torch.ones_like(chain[..., :1]))
    rules["transition must have one stationary distribution if initial is None"] = singular == 0
    return stationary.squeeze(-1).mT, rules


def _sum_to_one(probability: Tensor, tolerance: float) -> Tensor:
    """(..., K, N): rows of (..., K, K, N) that are non-negative and sum to 1 within `tolerance`."""
    return (probability >= 0).all(-2) & ((probability.sum(-2) - 1).abs() <= tolerance)


def _log_density(returns: Tensor, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
    """r - mean and the log-density in each regime: (..., T, K, N); both are 0 for a missing return."""
    r, mean, variance = returns.unsqueeze(-2), mean.unsqueeze(-3), variance.unsqueeze(-3)
    deviation = torch.where(r.isnan(), 0, torch.where(r.isnan(), 0, r) - mean)
    log_tau = float64_constant(variance, math.log(math.tau))
    log_density = -(variance.log() + log_tau + deviation * deviation / variance) / 2
    return deviation, torch.where(r.isnan(), 0, log_density)


def _reference(
    returns: Tensor,  # (..., T, N)
    mean: Tensor,  # (..., K, N)
    variance: Tensor,  # (..., K, N)
    transition: Tensor,  # (..., K, K, N)
    initial: Tensor,  # (..., K, N)
) -> Tensor:  # (..., T, K + 1, N): probabilities, log-likelihood
    return _step(returns, mean, variance, transition, initial)[0]


def _step(
    returns: Tensor, mean: Tensor, variance: Tensor, transition: Tensor, predicted: Tensor
) -> tuple[Tensor, Tensor]:
    """Probabilities and log-likelihood of each row, and the probabilities predicted for the row after the last."""
    rows = []
    for log_density in _log_density(returns, mean, variance)[1].unbind(-3):
        joint = predicted.log() + log_density
        likelihood = joint.logsumexp(-2, keepdim=True)
        probability = (joint - likelihood).exp()
        rows.append(torch.cat([probability, likelihood], -2))
        predicted = (transition * probability.unsqueeze(-2)).sum(-3)
    return (torch.stack(rows, dim=-3) if rows else _fake(returns, mean)), predicted


def _fake(returns: Tensor, mean: Tensor) -> Tensor:
    return returns.new_empty((*returns.shape[:-1], mean.shape[-2] + 1, returns.shape[-1]))


def _backward(
    grad: Tensor,
    *,
    returns: Tensor,
    mean: Tensor,
    variance: Tensor,
    transition: Tensor,
    output: Tensor,
    needs_input_grad: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    # With the weights w_t = f(r_t) / c_t held fixed the filter is linear, a_t = diag(w_t) P' a_{t-1}, and a_t = p_t.
    # In terms of a: p_t = a_t / 1'a_t, and the log-likelihood is the change of ln 1'a_t. With incoming gradients g of p
    # and l of the log-likelihood, a_t has the gradient G_t = g_t - 1 g_t'p_t + 1 (l_t - l_{t+1}) from its own row, and
    # the adjoint A_t = G_t + P diag(w_{t+1}) A_{t+1}, a recurrence in reverse time. With D_t = p_t A_t = d ln f(r_t):
    # dP = sum p_{t-1} (w_t A_t)'    dinitial = w_0 A_0    dmean = sum D (r - mean) / variance = -dr
    # dvariance = sum D ((r - mean)^2 / variance - 1) / (2 variance)
    p, log_c = output[..., :-1, :], output[..., -1:, :]
    deviation, log_density = _log_density(returns, mean, variance)
    w = (log_density - log_c).clamp(max=math.log(torch.finfo(p.dtype).max) / 2).exp()  # a regime of p = 0 may overflow
    g, l_now = grad[..., :-1, :], grad[..., -1:, :]
    p_next, l_next, w_next = (
        torch.cat([x[..., 1:, :, :], torch.zeros_like(x[..., :1, :, :])], -3) for x in (p, l_now, w)
    )
    row_gradient = g - (g * p).sum(-2, keepdim=True) + l_now
    matrices = transition.unsqueeze(-4) * w_next.unsqueeze(-3)
    if has_float64(p.device):
        row_gradient = row_gradient - l_next
    else:  # l_{t+1} = p_{t+1}'A_{t+1}, in terms of A itself: in float32 the rounding errors of A would add up
        matrices = matrices - p_next.unsqueeze(-3)
    adjoint = recur(matrices.flatten(-3, -2).flip(-3), row_gradient.flip(-3), None).flip(-3)
    d_predicted, d_log_density = w * adjoint, p * adjoint * ~returns.isnan().unsqueeze(-2)
    needs_returns, needs_mean, needs_variance, needs_transition, _ = needs_input_grad
    variance = variance.unsqueeze(-3)
    d_returns = d_mean = d_variance = d_transition = None
    if needs_returns or needs_mean:
        d_deviation = d_log_density * deviation / variance
        d_returns, d_mean = -d_deviation.sum(-2), d_deviation.sum(-3)
    if needs_variance:
        d_variance = (d_log_density * (deviation * deviation / variance - 1) / (2 * variance)).sum(-3)
    if needs_transition:
        d_transition = (p[..., :-1, :, None, :] * d_predicted[..., 1:, None, :, :]).sum(-4)
    return d_returns, d_mean, d_variance, d_transition, d_predicted[..., :1, :, :].sum(-3)


def _stacked(*tensors: Tensor) -> Tensor:
    """The public function with one output, since the contract expects the same time axis in all outputs."""
    probability, loglikelihood = hamilton_filter(*tensors)
    return torch.cat([probability, loglikelihood.unsqueeze(-2)], -2)


def _oracle(returns: Tensor, mean: Tensor, variance: Tensor, transition: Tensor) -> Tensor:
    import numpy as np
    from statsmodels.tsa.regime_switching.markov_regression import MarkovRegression

    columns = []
    for r, m, v, chain in zip(returns.T, mean.T, variance.T, transition.permute(2, 0, 1)):
        model = MarkovRegression(r.numpy(), k_regimes=len(m), switching_variance=True)
        result = model.filter(np.concatenate([chain[:, :-1].mT.reshape(-1), m, v]))  # rows sum to 1: no last column
        columns.append(np.column_stack([result.filtered_marginal_probabilities, result.llf_obs]))
    return torch.from_numpy(np.stack(columns, -1))


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, dtype=torch.double, generator=generator) + 0.1

    returns = torch.randn(2, 9, 3, dtype=torch.double, generator=generator)
    mean, variance = uniform(2, 2, 3) - 0.6, uniform(2, 2, 3) * torch.tensor([[1.0], [4.0]]).double()
    # multiples of 1/64, exact in bfloat16
    first, start = ((uniform(*shape) * 55).round() / 64 for shape in ((2, 2, 1, 3), (2, 1, 3)))
    transition, initial = torch.cat([first, 1 - first], -2), torch.cat([start, 1 - start], -2)
    arguments = (returns, mean, variance, transition, initial)
    gaps = returns.clone()
    gaps[0, 0, 0] = gaps[0, 4:6, 1] = gaps[1, -1, 2] = torch.nan
    half = torch.full((2, 1), 0.5, dtype=torch.double)
    density = torch.tensor([math.exp(-0.5), math.exp(-0.125) / 2], dtype=torch.double) / math.sqrt(math.tau)
    return Cases(
        function=_stacked,
        samples=(
            Sample(*arguments),
            Sample(gaps, *arguments[1:]),
            Sample(gaps, *arguments[1:4]),
            Sample(*arguments[:4]),
        ),
        bad=(
            Bad(Sample(returns[0, 0], *arguments[1:]), r"hamilton_filter: returns must be \(\.\.\., T, N\)"),
            Bad(Sample(returns, mean, -variance, transition), "variance must be > 0; got"),
            Bad(Sample(returns, mean, variance, 2 * transition), "transition must be >= 0 with rows that sum to 1"),
            Bad(Sample(*arguments[:4], 2 * initial), "initial must be >= 0 and sum to 1"),
            Bad(
                Sample(returns, mean, variance, torch.eye(2).double().unsqueeze(-1)),
                "transition must have one stationary distribution if initial is None",
            ),
            Bad(Sample(returns, mean, variance[..., :2], transition), r"variance must broadcast to \(\.\.\., K, N\)"),
        ),
        golden=(
            Golden(
                Sample(torch.ones(1, 1).double(), 0 * half, torch.tensor([[1.0], [4.0]]).double(),
                       torch.full((2, 2, 1), 0.5).double()),
                torch.cat([density / density.sum(), density.mean().log().reshape(1)]).reshape(1, 3, 1),
                "by hand: two densities with equal weights",
            ),
        ),
        oracle=_oracle,
        oracle_samples=(Sample(returns[0], *(x[0] for x in arguments[1:4])),),
    )  # fmt: skip


operator = Op(
    "commodity::hamilton_filter", reference=_reference, fake=_fake, backward=_backward, cases=_cases, time=(-2, -3)
)
