"""Newton's method within linear bounds, for many small problems at once: a primal-dual interior point."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

CONVERGED, EXHAUSTED, STALLED = 0, 1, 2
GAP = 1e-6  # what is left to gain, in the unit of the objective, when a problem counts as solved
SHARE = 0.99  # of the way to the nearest bound that a step may go

# (points (n, P), which problems (n,)) -> values (n,), gradients (n, P), Hessians (n, P, P)
Objective = Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]


@dataclass(frozen=True)
class Problems:
    """Where each problem stands."""

    which: Tensor  # (n,) its number
    x: Tensor  # (n, P)
    value: Tensor  # (n,)
    gradient: Tensor  # (n, P)
    hessian: Tensor  # (n, P, P)
    dual: Tensor  # (n, M) a multiplier for each bound
    barrier: Tensor  # (n,) its weight
    shrink: Tensor  # (n,) the share of the last step that was tried
    status: Tensor  # (n,) -1 while it is not solved
    iterations: Tensor  # (n,)

    def at(self, index: Tensor) -> "Problems":
        return Problems(*(getattr(self, field.name)[index] for field in fields(self)))


def minimize(
    objective: Objective, x: Tensor, bounds: Tensor, limits: Tensor, which: Tensor | None = None, most: int = 60
) -> Problems:
    """min f(x) where `bounds` @ x > `limits`, from `x` (n, P) inside, or (P,) for all; each problem on its own.

    Each turn evaluates every problem that is not solved once: a step is taken, or halved for the next turn. Where the
    Hessian is not positive definite the sizes of its eigenvalues stand in for them, so each direction leads downhill.
    `which` are the numbers of the problems, if not all.

    Reference: Nocedal, Wright (2006). Numerical Optimization, section 19. doi:10.1007/978-0-387-40065-5
    """
    which = torch.arange(len(x), device=x.device) if which is None else which
    x = x.expand(len(which), -1).contiguous()
    now = _begun(objective, x, bounds, limits, which)
    places, done = torch.arange(len(which), device=x.device), now
    for _ in range(most):
        active = now.status < 0
        if 2 * int(active.sum()) <= len(active):
            done = _put(done, places, now)
            places, now = places[active], now.at(active)
        if not len(places):
            break
        now = _turn(objective, now, bounds, limits)
    return _put(done, places, replace(now, status=torch.where(now.status < 0, EXHAUSTED, now.status)))


def better(problems: Problems, tried: Problems) -> Problems:
    """`problems`, all of them, with those of `tried` that came out lower."""
    lower = tried.at(tried.value < problems.value[tried.which])
    return _put(problems, lower.which, lower)


def _begun(objective: Objective, x: Tensor, bounds: Tensor, limits: Tensor, which: Tensor) -> Problems:
    one, zero = torch.ones_like(x[:, 0]), torch.zeros_like(which)
    barrier = 0.1 * one
    dual = barrier.unsqueeze(1) / (x @ bounds.T - limits)
    return Problems(which, x, *objective(x, which), dual, barrier, one, zero - 1, zero)


def _put(problems: Problems, places: Tensor, new: Problems) -> Problems:
    pairs = ((getattr(problems, field.name), getattr(new, field.name)) for field in fields(problems))
    return Problems(*(old.index_copy(0, places, value) for old, value in pairs))


def _turn(objective: Objective, now: Problems, bounds: Tensor, limits: Tensor) -> Problems:
    slack = now.x @ bounds.T - limits
    downhill = now.gradient - (now.barrier[:, None] / slack) @ bounds
    direction = _newton(now.hessian, (now.dual / slack).unsqueeze(-1) * bounds, bounds, downhill)
    gain = -(downhill * direction).sum(1)
    moved = direction @ bounds.T
    d_dual = now.barrier[:, None] / slack - now.dual * (1 + moved / slack)
    solved = (gain < GAP) & ((slack * now.dual).sum(1) < 10 * GAP)
    status = torch.where(
        now.status >= 0, now.status, torch.where(solved, CONVERGED, torch.where(now.shrink < 1e-7, STALLED, -1))
    )
    step = now.shrink * _longest(slack, moved)
    x = now.x + step[:, None] * direction
    value, gradient, hessian = objective(x, now.which)
    merit = value - now.value - now.barrier * ((x @ bounds.T - limits).log() - slack.log()).sum(1)
    taken = (merit <= -1e-4 * step * gain + 1e-11 * now.value.abs()) & (status < 0)
    dual = now.dual + _longest(now.dual, d_dual)[:, None] * d_dual
    new_slack = x @ bounds.T - limits
    barrier = (new_slack * dual).mean(1) * torch.where(step > 0.9, 0.05, torch.where(step > 0.5, 0.2, 0.7))
    barrier = torch.minimum(barrier, now.barrier).clamp(min=GAP / 10)
    dual = torch.minimum(torch.maximum(dual, barrier[:, None] / new_slack / 1e6), barrier[:, None] / new_slack * 1e6)
    tried = Problems(
        now.which, x, value, gradient, hessian, dual, barrier, torch.ones_like(step), status, now.iterations + 1
    )
    stayed = replace(now, shrink=now.shrink / 2, status=status, iterations=now.iterations + (status < 0))
    return Problems(*(_where(taken, getattr(tried, f.name), getattr(stayed, f.name)) for f in fields(now)))


def _where(flags: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return torch.where(flags.reshape(-1, *(1,) * (x.dim() - 1)), x, y)


def _longest(room: Tensor, moved: Tensor) -> Tensor:
    """The longest step up to 1 that keeps `room` + step x `moved` positive."""
    return (SHARE / (-moved / room).amax(1).clamp(min=SHARE)).clamp(max=1)


def _newton(hessian: Tensor, weighed: Tensor, bounds: Tensor, downhill: Tensor) -> Tensor:
    """The direction that minimizes the quadratic model of the objective and its barrier."""
    barrier = bounds.T @ weighed
    model = hessian + barrier
    scale = model.diagonal(dim1=1, dim2=2).abs().clamp(min=1e-300).rsqrt()
    squared = scale.unsqueeze(2) * scale.unsqueeze(1)
    factor, failed = torch.linalg.cholesky_ex(model * squared)
    wrong = (failed > 0).nonzero().squeeze(1)
    if len(wrong):
        values, vectors = torch.linalg.eigh((model * squared)[wrong])
        sizes = values.abs().clamp(min=1e-6)
        factor[wrong] = torch.linalg.cholesky((vectors * sizes.unsqueeze(1)) @ vectors.mT)
    return -torch.cholesky_solve((scale * downhill).unsqueeze(2), factor).squeeze(2) * scale
