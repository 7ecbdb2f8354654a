"""The exact gradient of the pooled Sharpe ratio of a batch in parts: microbatches, processes, or both."""

import torch
from torch import Tensor, distributed

from torchcommodity.losses._moments import check_returns, count_mean_square
from torchcommodity.losses._sharpe import EPS

AGREE = 1e-4  # relative: a second pass in low precision may differ by its rounding, not by a dropout mask


class PooledSharpe:
    """The loss `sharpe_loss(all returns, pooled=True)` of returns that never stand in memory together.

    The ratio is no mean over parts, so that the mean of the parts' gradients is not its gradient. Two passes give the
    exact one. The first, without gradients, collects count, mean and squared deviations of every part. In the second
    each part gets a loss that is linear in its returns, with the coefficients

        d loss / d r_i = -1 / (n (s + eps)) + (mean - risk_free) (r_i - mean) / ((s + eps)^2 (n - ddof) s)

    of the whole. Gradients of the parts then *sum* to the gradient of the whole; do not divide by their number.

    Where `torch.distributed` runs, the first call of `loss` gathers the moments of all processes, so every process must
    come to it. `DistributedDataParallel` and Fabric *average* gradients over processes; `averaged=True` multiplies by
    their number, which makes the average the sum. With several microbatches a process, wrap all but the last in
    `no_sync`. One object serves one optimizer step.

    Args:
        risk_free, eps, ddof: those of `sharpe_loss`.
        averaged: whether gradients will be averaged over processes; False where they are summed.

    Raises:
        ValueError: the parts of the second pass are not those of the first, in the same order: a model that drops out
            at random, or normalizes over its batch, has no two equal passes.

    References:
        Chan, Golub, LeVeque (1983). Algorithms for computing the sample variance. American Statistician 37(3).
        doi:10.1080/00031305.1983.10483115.

    Example:
        >>> import torch
        >>> weight = torch.tensor([0.5], requires_grad=True)
        >>> parts = torch.tensor([0.01, -0.02, 0.03]).split(2)
        >>> pool = PooledSharpe()
        >>> with torch.no_grad():
        ...     for part in parts:
        ...         pool.collect(weight * part)
        >>> for part in parts:
        ...     pool.loss(weight * part).backward()
        >>> weight.grad  # of the three returns together
        tensor([-0.0041])
    """

    def __init__(self, *, risk_free: float = 0.0, eps: float = EPS, ddof: int = 1, averaged: bool = True) -> None:
        self.risk_free, self.eps, self.ddof, self.averaged = risk_free, eps, ddof, averaged
        self._parts: list[Tensor] = []  # of this process: count, mean, squared deviations of each
        self._seen = 0
        self._whole: Tensor | None = None

    def collect(self, returns: Tensor) -> None:  # (..., T)
        """First pass: take note of one part."""
        check_returns("PooledSharpe", returns)
        if self._whole is not None:
            raise ValueError("PooledSharpe: expected all parts to be collected before the first loss; got one after it")
        self._parts.append(_moments(returns))

    def loss(self, returns: Tensor) -> Tensor:  # (..., T) -> ()
        """Second pass: a part's share of the loss, its count over n; its gradient is a part of that of the whole."""
        check_returns("PooledSharpe", returns)
        part = self._next(returns)
        count, mean, volatility = self._statistics(returns.device)
        scale = volatility + self.eps
        slope = -1 / (count * scale)
        bend = (mean - self.risk_free) / (scale**2 * max(count - self.ddof, 1) * volatility) if volatility else 0.0
        known = ~returns.isnan()
        moved = torch.where(known, returns - returns.detach(), 0.0)  # 0, with the gradient of the returns
        coefficients = torch.where(known, slope + bend * (returns.detach() - mean), 0.0)
        share = -(mean - self.risk_free) / scale * part[0].item() / count
        return share + self._averaged_over() * (coefficients * moved).sum()

    def _next(self, returns: Tensor) -> Tensor:
        """The moments of the part whose turn it is, after a check that the second pass agrees with the first."""
        found = _moments(returns)
        if self._seen >= len(self._parts):
            raise ValueError(f"PooledSharpe: expected the {len(self._parts)} parts that were collected; got one more")
        part = self._parts[self._seen]
        if not torch.allclose(found, part, rtol=AGREE, atol=AGREE * EPS, equal_nan=True):
            raise ValueError(
                "PooledSharpe: both passes must give the same returns in the same order (no dropout, no batch norm in "
                f"training mode); part {self._seen} had (count, mean, squares) {part.tolist()}, now {found.tolist()}"
            )
        self._seen += 1
        return part

    def _statistics(self, device: torch.device) -> tuple[float, float, float]:
        """Count, mean and volatility of all parts of all processes."""
        if self._whole is None:
            self._whole = _merge(_gather(_merge(torch.stack(self._parts)), device))
        count, mean, square = self._whole.tolist()
        return count, mean, (square / max(count - self.ddof, 1)) ** 0.5

    def _averaged_over(self) -> int:
        return distributed.get_world_size() if self.averaged and _is_distributed() else 1


def _moments(returns: Tensor) -> Tensor:  # (..., T) -> (3,)
    return torch.stack([x.double() for x in count_mean_square(returns.detach().cpu().double().reshape(-1))])


def _merge(parts: Tensor) -> Tensor:  # (K, 3) -> (3,)
    """Moments of parts together: squares about the common mean, never E[r^2] - E[r]^2."""
    count, mean, square = parts.unbind(1)
    whole = (count * mean).sum() / count.sum().clamp(min=1)
    return torch.stack([count.sum(), whole, (square + count * (mean - whole).square()).sum()])


def _is_distributed() -> bool:
    return distributed.is_available() and distributed.is_initialized()


def _gather(mine: Tensor, device: torch.device) -> Tensor:  # (3,) -> (processes, 3)
    if not _is_distributed():
        return mine.unsqueeze(0)
    mine = mine.to(device)  # NCCL knows no memory but its own
    everyone = [torch.empty_like(mine) for _ in range(distributed.get_world_size())]
    distributed.all_gather(everyone, mine)
    return torch.stack(everyone).cpu()
