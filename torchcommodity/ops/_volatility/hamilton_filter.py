"""In which regime are we? Filtered probabilities of a Markov-switching volatility, and how likely each return was."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from torchcommodity.opkit import Bad, Cases, Golden, Op, Sample
from torchcommodity.opkit.arguments import check_panel, check_values, raise_invalid
from torchcommodity.ops._scan.matrix_recurrence import operator as recur
from torchcommodity.ops._volatility.parameters import in_full


class HamiltonFilter(NamedTuple):
    probability: Tensor  # (..., T, K, N)
    loglikelihood: Tensor  # (..., T, N)


def hamilton_filter(
    returns: Tensor,  # (..., T, N)
    mean: Tensor,  # (..., K, N)
    variance: Tensor,  # (..., K, N)
    transition: Tensor,  # (..., K, K, N)
    initial: Tensor | None = None,  # (..., K, N)
) -> HamiltonFilter:
    """Hamilton's filter of K regimes s_t, each with its normal distribution, that follow each other as a Markov chain.

    p_t|t-1(j) = sum_i transition_ij p_t-1(i), then Bayes' rule: p_t(j) = p_t|t-1(j) f_j(r_t) / c_t, where f_j is the
    density of N(mean_j, variance_j) and c_t the sum of the numerators; ln c_t is the log-likelihood of the row.

    Args:
        returns: log-returns per step; NaN is a missing return.
        mean: of each regime, in the unit of `returns`; (K, 1) is one for all series.
        variance: of each regime (no volatility), in the unit of `returns` squared, > 0.
        transition: [i, j] is the probability of regime j after regime i; its rows add up to one. (statsmodels has the
            transpose.) (K, K, 1) is one for all series.
        initial: probabilities of the regimes at the first row, before its return is seen; None is the stationary
            distribution of `transition`.

    Returns:
        probability, p_t after r_t has been seen, and loglikelihood, ln f(r_t | past), whose sum over time is that of
        the model. Causal, no warm-up. A missing return predicts only: p_t = p_t|t-1, and its log-likelihood is 0.

    Raises:
        ValueError, TypeError: `returns` is no floating-point panel, a parameter does not broadcast to its shape, a
            variance is not positive, probabilities are negative or do not add up to one, or `transition` has more than
            one stationary distribution and there is no `initial`.
            Where values cannot be read (`torch.compile`, `torch.export`, `torch.func`), such a series is NaN instead.

    Devices: CPU and CUDA, in float64 inside; elsewhere the reference. Differentiable in all tensors, to any order, in
    both modes.

    References:
        Hamilton (1989). A new approach to the economic analysis of nonstationary time series and the business cycle.
        Econometrica 57(2). doi:10.2307/1912559

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> returns = torch.tensor([[0.1], [3.0], [float("nan")]])  # percent
        >>> calm_or_wild = torch.tensor([[0.5], [4.0]])  # percent squared
        >>> stay = torch.tensor([[0.9, 0.1], [0.2, 0.8]]).unsqueeze(-1)
        >>> ops.hamilton_filter(returns, torch.zeros(2, 1), calm_or_wild, stay).probability.squeeze(-1)
        tensor([[0.8487, 0.1513],
                [0.0041, 0.9959],
                [0.2029, 0.7971]])
    """
    check_panel("hamilton_filter", returns=returns)
    if not isinstance(mean, Tensor) or mean.dim() < 2:
        raise_invalid("hamilton_filter", "mean must be a Tensor (..., K, N)", TypeError, mean=mean)
    states, given = mean.shape[-2], {"mean": mean, "variance": variance, "transition": transition}
    given |= {} if initial is None else {"initial": initial}
    tensors = {name: _parameter(returns, name, x, states) for name, x in given.items()}
    first, rules = _first(**tensors, slack=max(1e-4, 2 * torch.finfo(transition.dtype).eps))
    valid = check_values("hamilton_filter", rules, **tensors, returns=returns)
    variance = torch.where(valid.unsqueeze(-2), tensors["variance"], 1)
    start = torch.where(valid.unsqueeze(-2), first, torch.nan)
    y = operator(returns, tensors["mean"], variance, tensors["transition"], start).to(returns.dtype)
    return HamiltonFilter(y[..., :-1, :].contiguous(), y[..., -1, :].contiguous())


def _parameter(returns: Tensor, name: str, value: Tensor, states: int) -> Tensor:
    axes = (states, states) if name == "transition" else (states,)
    wide = torch.promote_types(returns.dtype, torch.float32)
    try:
        return value.to(returns.device, wide).expand(*returns.shape[:-2], *axes, returns.shape[-1])
    except RuntimeError:
        shape = "(..., K, K, N)" if name == "transition" else "(..., K, N)"
        raise_invalid("hamilton_filter", f"{name} must broadcast to {shape}", **{name: value}, returns=returns)


def _first(
    mean: Tensor, variance: Tensor, transition: Tensor, initial: Tensor | None = None, *, slack: float
) -> tuple[Tensor, dict[str, Tensor]]:
    """The probabilities at the first row, and the rules that the values of a series must keep."""
    words = "transition must be >= 0, and its rows must add up to 1"
    rules = {"variance must be > 0": (variance > 0).all(-2), words: _add_up(transition, slack).all(-2)}
    if initial is not None:
        return initial, rules | {
            "initial must be >= 0 and add up to 1": _add_up(initial.unsqueeze(-3), slack).squeeze(-2)
        }
    # p = P'p and 1'p = 1, so (I - P' + 11') p = 1
    chain = torch.eye(mean.shape[-2], dtype=mean.dtype, device=mean.device) + 1 - transition.movedim(-1, -3).mT
    first, failed = torch.linalg.solve_ex(chain, torch.ones_like(chain[..., :1]))
    words = "transition must have one stationary distribution without initial"
    return first.squeeze(-1).mT, rules | {words: failed == 0}


def _add_up(probability: Tensor, slack: float) -> Tensor:
    """(..., K, N): whether each row of (..., K, K, N) adds up to one, as far as its dtype can."""
    return (probability >= 0).all(-2) & ((probability.sum(-2) - 1).abs() <= slack)


def _log_density(returns: Tensor, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
    """r - mean and the log of the density of each regime: (..., T, K, N). A missing return says nothing: 0 and 0."""
    r, mean, variance = returns.unsqueeze(-2), mean.unsqueeze(-3), variance.unsqueeze(-3)
    away = torch.where(r.isnan(), 0, torch.where(r.isnan(), 0, r) - mean)
    density = -(variance.log() + in_full(variance, math.log(math.tau)) + away * away / variance) / 2
    return away, torch.where(r.isnan(), 0, density)


def _reference(
    returns: Tensor,  # (..., T, N)
    mean: Tensor,  # (..., K, N)
    variance: Tensor,  # (..., K, N)
    transition: Tensor,  # (..., K, K, N)
    initial: Tensor,  # (..., K, N)
) -> Tensor:  # (..., T, K + 1, N): probabilities, log-likelihood
    predicted, rows = initial, []
    for density in _log_density(returns, mean, variance)[1].unbind(-3):
        joint = predicted.log() + density
        likelihood = joint.logsumexp(-2, keepdim=True)
        probability = (joint - likelihood).exp()
        rows.append(torch.cat([probability, likelihood], -2))
        predicted = (transition * probability.unsqueeze(-2)).sum(-3)
    return torch.stack(rows, dim=-3) if rows else _fake(returns, mean, variance, transition, initial)


def _fake(returns: Tensor, mean: Tensor, variance: Tensor, transition: Tensor, initial: Tensor) -> Tensor:
    return returns.new_empty((*returns.shape[:-1], mean.shape[-2] + 1, returns.shape[-1]))


def _backward(
    grad: Tensor, *, returns: Tensor, mean: Tensor, variance: Tensor, transition: Tensor, output: Tensor
) -> tuple[Tensor, ...]:
    # The filter without its denominators c_t is linear: a_t = diag(w_t) P' a_{t-1}, w_t = f(r_t) / c_t. Where w is
    # that of the filter, a_t = p_t. Then p_t = a_t / 1'a_t, and the log-likelihood is the change of ln 1'a_t, so that
    # a_t owes G_t = g_t - 1 g_t'p_t + 1 (l_t - l_{t+1}) at once (g, l: the incoming gradients), and with all that
    # follows L_t = G_t + P diag(w_{t+1}) L_{t+1}: a recurrence backwards in time. With D_t = p_t L_t = d ln f(r_t):
    # dP = sum p_{t-1} (w_t L_t)'    dinitial = w_0 L_0    dmean = sum D (r - mean) / variance = -dr
    # dvariance = sum D ((r - mean)^2 / variance - 1) / (2 variance)
    p, c = output[..., :-1, :], output[..., -1:, :]
    away, density = _log_density(returns, mean, variance)
    w = (density - c).clamp(max=math.log(torch.finfo(p.dtype).max) / 2).exp()  # an impossible regime can be likely
    g, l_now = grad[..., :-1, :], grad[..., -1:, :]
    l_next = torch.cat([l_now[..., 1:, :, :], torch.zeros_like(l_now[..., :1, :, :])], -3)
    owed = g - (g * p).sum(-2, keepdim=True) + l_now - l_next
    w_next = torch.cat([w[..., 1:, :, :], torch.zeros_like(w[..., :1, :, :])], -3)
    matrices = (transition.unsqueeze(-4) * w_next.unsqueeze(-3)).flatten(-3, -2)
    later = recur(matrices.flip(-3), owed.flip(-3), None).flip(-3)
    pulled, shares = w * later, p * later * ~returns.isnan().unsqueeze(-2)
    d_transition = (p[..., :-1, :, None, :] * pulled[..., 1:, None, :, :]).sum(-4)
    variance = variance.unsqueeze(-3)
    d_mean = shares * away / variance
    d_variance = (shares * (away * away / variance - 1) / (2 * variance)).sum(-3)
    return -d_mean.sum(-2), d_mean.sum(-3), d_variance, d_transition, pulled[..., :1, :, :].sum(-3)


def _stacked(*tensors: Tensor) -> Tensor:
    """The door for the contract, which knows one axis of time for all outputs."""
    probability, loglikelihood = hamilton_filter(*tensors)
    return torch.cat([probability, loglikelihood.unsqueeze(-2)], -2)


def _oracle(returns: Tensor, mean: Tensor, variance: Tensor, transition: Tensor) -> Tensor:
    import numpy as np
    from statsmodels.tsa.regime_switching.markov_regression import MarkovRegression

    columns = []
    for r, m, v, chain in zip(returns.T, mean.T, variance.T, transition.permute(2, 0, 1)):
        model = MarkovRegression(r.numpy(), k_regimes=len(m), switching_variance=True)
        result = model.filter(np.concatenate([chain[:, :-1].mT.reshape(-1), m, v]))  # the last column follows
        columns.append(np.column_stack([result.filtered_marginal_probabilities, result.llf_obs]))
    return torch.from_numpy(np.stack(columns, -1))


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)

    def share(*shape: int) -> Tensor:
        return torch.rand(shape, dtype=torch.double, generator=generator) + 0.1

    returns = torch.randn(2, 9, 3, dtype=torch.double, generator=generator)
    mean, variance = share(2, 2, 3) - 0.6, share(2, 2, 3) * torch.tensor([[1.0], [4.0]]).double()
    rises, start = ((share(*shape) * 55).round() / 64 for shape in ((2, 2, 1, 3), (2, 1, 3)))  # bfloat16 has them
    transition, initial = torch.cat([rises, 1 - rises], -2), torch.cat([start, 1 - start], -2)
    full = (returns, mean, variance, transition, initial)
    holes = returns.clone()
    holes[0, 0, 0] = holes[0, 4:6, 1] = holes[1, -1, 2] = torch.nan
    even = torch.full((2, 1), 0.5, dtype=torch.double)
    density = torch.tensor([math.exp(-0.5), math.exp(-0.125) / 2], dtype=torch.double) / math.sqrt(math.tau)
    return Cases(
        function=_stacked,
        samples=(Sample(*full), Sample(holes, *full[1:]), Sample(holes, *full[1:4]), Sample(returns, mean, *full[2:4])),
        bad=(
            Bad(Sample(returns[0, 0], *full[1:]), r"hamilton_filter: returns must be \(\.\.\., T, N\)"),
            Bad(Sample(returns, mean, -variance, transition), "variance must be > 0; got"),
            Bad(Sample(returns, mean, variance, 2 * transition), "transition must be >= 0, and its rows must add"),
            Bad(Sample(*full[:4], 2 * initial), "initial must be >= 0 and add up to 1"),
            Bad(
                Sample(returns, mean, variance, torch.eye(2).double().unsqueeze(-1)),
                "transition must have one stationary distribution without initial",
            ),
            Bad(Sample(returns, mean, variance[..., :2], transition), r"variance must broadcast to \(\.\.\., K, N\)"),
        ),
        golden=(
            Golden(
                Sample(torch.ones(1, 1).double(), 0 * even, torch.tensor([[1.0], [4.0]]).double(),
                       torch.full((2, 2, 1), 0.5).double()),
                torch.cat([density / density.sum(), density.mean().log().reshape(1)]).reshape(1, 3, 1),
                "by hand: two densities, weighed evenly",
            ),
        ),
        oracle=_oracle,
        oracle_samples=(Sample(returns[0], *(x[0] for x in full[1:4])),),
    )  # fmt: skip


operator = Op("hamilton_filter", reference=_reference, fake=_fake, backward=_backward, cases=_cases, time=(-2, -3))
