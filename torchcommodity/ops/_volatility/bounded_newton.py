"""Newton's method with linear constraints for many small problems at once: a primal-dual interior-point method."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

CONVERGED, EXHAUSTED, STALLED = 0, 1, 2
TOLERANCE = 1e-6  # predicted decrease of the objective below which a problem has converged
MAX_STEP = 0.99  # fraction of the distance to the nearest bound

# (points (n, P), problem indices (n,)) -> values (n,), gradients (n, P), Hessians (n, P, P)
Objective = Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]


@dataclass(frozen=True)
class Iterates:
    """Iterates of n problems."""

    index: Tensor  # (n,) number of the problem
    x: Tensor  # (n, P)
    value: Tensor  # (n,)
    gradient: Tensor  # (n, P)
    hessian: Tensor  # (n, P, P)
    dual: Tensor  # (n, M) multiplier of each constraint
    barrier: Tensor  # (n,) weight of the barrier
    damping: Tensor  # (n,) factor of the next step: 1, halved after each rejected step
    status: Tensor  # (n,) -1 while not converged
    iterations: Tensor  # (n,)

    def at(self, rows: Tensor) -> "Iterates":
        return Iterates(*(getattr(self, field.name)[rows] for field in fields(self)))

    def put(self, rows: Tensor, other: "Iterates") -> "Iterates":
        """Replace `rows` by those of `other`."""
        pairs = ((getattr(self, field.name), getattr(other, field.name)) for field in fields(self))
        return Iterates(*(old.index_copy(0, rows, new) for old, new in pairs))


def minimize(
    objective: Objective,
    x: Tensor,
    bounds: Tensor,
    limits: Tensor,
    index: Tensor | None = None,
    max_iterations: int = 60,
) -> Iterates:
    """Minimize f(x) subject to `bounds` @ x > `limits`, independently for each problem.

    Every iteration evaluates each active problem once; a step that does not decrease its merit function is halved in
    the next iteration. Where the Hessian is not positive definite, its eigenvalues are replaced by their absolute
    values, so that every step is a descent direction.

    Args:
        x: strictly feasible starting points (n, P), or (P,) for all.
        index: numbers of the problems to solve; None means all.

    Reference: Nocedal, Wright (2006). Numerical Optimization, section 19. doi:10.1007/978-0-387-40065-5
    """
    index = torch.arange(len(x), device=x.device) if index is None else index
    x = x.expand(len(index), -1).contiguous()
    one, zero = torch.ones_like(x[:, 0]), torch.zeros_like(index)
    barrier = 0.1 * one
    dual = barrier.unsqueeze(1) / (_product(x, bounds.T) - limits)
    state = Iterates(index, x, *objective(x, index), dual, barrier, one, zero - 1, zero)
    rows, result = torch.arange(len(index), device=x.device), state
    for _ in range(max_iterations):
        active = state.status < 0
        if 2 * int(active.sum()) <= len(active):
            result = result.put(rows, state)
            rows, state = rows[active], state.at(active)
        if not len(rows):
            break
        state = _iterate(objective, state, bounds, limits)
    return result.put(rows, replace(state, status=torch.where(state.status < 0, EXHAUSTED, state.status)))


def merge_better(state: Iterates, retry: Iterates) -> Iterates:
    """`state` of all problems, with those of `retry` that reached a lower value."""
    lower = retry.at(retry.value < state.value[retry.index])
    return state.put(lower.index, lower)


def _iterate(objective: Objective, state: Iterates, bounds: Tensor, limits: Tensor) -> Iterates:
    slack = _product(state.x, bounds.T) - limits
    gradient = state.gradient - _product(state.barrier[:, None] / slack, bounds)
    direction = _newton_direction(state.hessian, (state.dual / slack).unsqueeze(-1) * bounds, bounds, gradient)
    decrease = -(gradient * direction).sum(1)
    d_slack = _product(direction, bounds.T)
    d_dual = state.barrier[:, None] / slack - state.dual * (1 + d_slack / slack)
    converged = (decrease < TOLERANCE) & ((slack * state.dual).sum(1) < 10 * TOLERANCE)
    status = torch.where(
        state.status >= 0,
        state.status,
        torch.where(converged, CONVERGED, torch.where(state.damping < 1e-7, STALLED, -1)),
    )
    step = state.damping * _max_step(slack, d_slack)
    x = state.x + step[:, None] * direction
    value, new_gradient, hessian = objective(x, state.index)
    new_slack = _product(x, bounds.T) - limits
    merit = value - state.value - state.barrier * ((new_slack / slack).prod(1) - 1).log1p()
    accepted = (merit <= -1e-4 * step * decrease + 1e-11 * state.value.abs()) & (status < 0)
    dual = state.dual + _max_step(state.dual, d_dual)[:, None] * d_dual
    barrier = (new_slack * dual).mean(1) * torch.where(step > 0.9, 0.05, torch.where(step > 0.5, 0.2, 0.7))
    barrier = torch.minimum(barrier, state.barrier).clamp(min=TOLERANCE / 10)
    dual = torch.minimum(torch.maximum(dual, barrier[:, None] / new_slack / 1e6), barrier[:, None] / new_slack * 1e6)
    iterations, damping = state.iterations + 1, torch.ones_like(step)
    next_state = Iterates(state.index, x, value, new_gradient, hessian, dual, barrier, damping, status, iterations)
    iterations = state.iterations + (status < 0)
    retry = replace(state, damping=state.damping / 2, status=status, iterations=iterations)
    pairs = [(getattr(next_state, field.name), getattr(retry, field.name)) for field in fields(state)]
    masks = [accepted.reshape(-1, *(1,) * (new.dim() - 1)) for new, _ in pairs]
    return Iterates(*(torch.where(mask, new, old) for mask, (new, old) in zip(masks, pairs)))


def _product(x: Tensor, matrix: Tensor) -> Tensor:
    """x @ matrix for (n, P) and (P, K) with small P and K, without a parallel region: see `_solve`."""
    return (x.unsqueeze(2) * matrix).sum(1)


def _max_step(x: Tensor, direction: Tensor) -> Tensor:
    """The longest step in (0, 1] for which x + step x direction stays positive, with a margin."""
    return (MAX_STEP / (-direction / x).amax(1).clamp(min=MAX_STEP)).clamp(max=1)


def _newton_direction(hessian: Tensor, weighted_bounds: Tensor, bounds: Tensor, gradient: Tensor) -> Tensor:
    """The minimizer of the quadratic model of the objective and its barrier."""
    model = hessian + torch.bmm(bounds.T.expand(len(hessian), -1, -1), weighted_bounds)
    scale = model.diagonal(dim1=1, dim2=2).abs().clamp(min=1e-300).rsqrt()
    model, target = model * scale.unsqueeze(2) * scale.unsqueeze(1), scale * gradient
    solution, positive = _solve(model, target)
    indefinite = (~positive).nonzero().squeeze(1)
    if len(indefinite):
        values, vectors = torch.linalg.eigh(model[indefinite])
        projected = (vectors.mT @ target[indefinite].unsqueeze(2)) / values.abs().clamp(min=1e-6).unsqueeze(2)
        solution[indefinite] = (vectors @ projected).squeeze(2)
    return -solution * scale


def _solve(matrix: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The solutions of symmetric systems (n, P, P) by elimination, and whether each matrix is positive definite.

    PyTorch's Cholesky decomposition, `mm`, `log` and advanced indexing open parallel regions even where n is small, and
    on a loaded machine such a region waits for all of its threads: this module does without them.
    """
    rows, positive = torch.cat([matrix, target.unsqueeze(2)], 2), torch.ones_like(target[:, 0], dtype=torch.bool)
    for k in range(matrix.shape[1]):
        positive &= rows[:, k, k] > 0  # as is every pivot of a positive definite matrix
        pivot_row = rows[:, k] / rows[:, k, k, None]
        rows = rows - rows[:, :, k, None] * pivot_row.unsqueeze(1)
        rows[:, k] = pivot_row
    return rows[:, :, -1], positive
