"""Exact gradient of the pooled Sharpe ratio over microbatches and processes."""

import torch
from torch import Tensor, distributed

from torch_opkit.arguments import raise_invalid
from torchcommodity.losses._reduction import check_numbers, check_returns, count_mean_squares
from torchcommodity.losses._sharpe import EPSILON

TOLERANCE = 1e-4  # relative: above the rounding between two passes in low precision, below the effect of dropout


class PooledSharpe:
    """Gradient accumulation for `sharpe_loss(all_returns, pooled=True)` when the returns do not fit into memory.

    The ratio is not a mean over microbatches, so the mean of their gradients is not its gradient. Two passes give the
    exact gradient. The first, without gradients, collects count, mean and squared deviations of every microbatch. In
    the second each microbatch gets a loss that is linear in its returns, with coefficients from the pooled moments:

        d loss / d r_i = -1 / (n (s + epsilon)) + (mean - risk_free) (r_i - mean) / ((s + epsilon)^2 (n - 1) s)

    with n instead of n - 1 in the second term for the biased deviation, `unbiased=False`.

    The gradients of the microbatches *sum* to the gradient of the pooled loss; do not divide by their number.

    Under `torch.distributed` the first call of `loss` gathers the moments of all processes, so every process must make
    it. `DistributedDataParallel` and Fabric *average* gradients over processes; with `averaged=True` the loss is
    multiplied by their number, which turns the average into the sum. With several microbatches per process, wrap all
    but the last in `no_sync`. Create a new object for each optimizer step.

    Args:
        risk_free, epsilon, unbiased: those of `sharpe_loss`.
        averaged: whether gradients will be averaged over processes; False if they are summed.

    Raises:
        ValueError: the microbatches of the second pass differ from those of the first, or their order differs. Models
            with dropout, or with batch norm in training mode, do not reproduce their output.

    References:
        Chan, Golub, LeVeque (1983). Algorithms for computing the sample variance. American Statistician 37(3).
        doi:10.1080/00031305.1983.10483115.

    Example:
        >>> import torch
        >>> weight = torch.tensor([0.5], requires_grad=True)
        >>> microbatches = torch.tensor([0.01, -0.02, 0.03]).split(2)
        >>> pool = PooledSharpe()
        >>> with torch.no_grad():
        ...     for returns in microbatches:
        ...         pool.collect(weight * returns)
        >>> for returns in microbatches:
        ...     pool.loss(weight * returns).backward()
        >>> weight.grad  # of the three returns together
        tensor([-0.0041])
    """

    def __init__(
        self, *, risk_free: float = 0.0, epsilon: float = EPSILON, unbiased: bool = True, averaged: bool = True
    ) -> None:
        check_numbers("PooledSharpe", risk_free=risk_free, epsilon=epsilon)
        if not epsilon >= 0:  # NaN too
            raise_invalid("PooledSharpe", "epsilon must be >= 0", epsilon=epsilon)
        self.risk_free, self.epsilon, self.unbiased, self.averaged = risk_free, epsilon, unbiased, averaged
        self._collected: list[Tensor] = []  # count, mean, squared deviations of each microbatch of this process
        self._position = 0
        self._pooled: Tensor | None = None

    def collect(self, returns: Tensor) -> None:  # (..., T)
        """First pass: record the moments of one microbatch."""
        check_returns("PooledSharpe", returns)
        if self._pooled is not None:
            raise ValueError("PooledSharpe: collect every microbatch before the first loss; got one after it")
        self._collected.append(_moments(returns))

    def loss(self, returns: Tensor) -> Tensor:  # (..., T) -> ()
        """Second pass: a microbatch's share of the loss, by its number of returns, with its share of the gradient."""
        check_returns("PooledSharpe", returns)
        moments = self._next_moments(returns)
        count, mean, volatility = self._statistics(returns.device)
        scale = volatility + self.epsilon
        mean_term = -1 / (count * scale)
        deviation_term = 0.0
        if volatility:
            deviation_term = (mean - self.risk_free) / (scale**2 * max(count - int(self.unbiased), 1) * volatility)
        valid = ~returns.isnan()
        zeros = torch.where(valid, returns - returns.detach(), 0.0)  # 0, with the gradient of the returns
        coefficients = torch.where(valid, mean_term + deviation_term * (returns.detach() - mean), 0.0)
        share = -(mean - self.risk_free) / scale * moments[0].item() / count
        processes = distributed.get_world_size() if self.averaged and _is_distributed() else 1
        return share + processes * (coefficients * zeros).sum()

    def _next_moments(self, returns: Tensor) -> Tensor:
        """Moments collected for this microbatch, after a check that the second pass agrees with the first."""
        moments = _moments(returns)
        if self._position >= len(self._collected):
            raise ValueError(f"PooledSharpe: {len(self._collected)} microbatches were collected; got one more")
        collected = self._collected[self._position]
        if not torch.allclose(moments, collected, rtol=TOLERANCE, atol=TOLERANCE * EPSILON, equal_nan=True):
            raise ValueError(
                "PooledSharpe: both passes must give the same returns in the same order (no dropout, no batch norm in "
                f"training mode); microbatch {self._position} had (count, mean, squared deviations) "
                f"{collected.tolist()}, now {moments.tolist()}"
            )
        self._position += 1
        return collected

    def _statistics(self, device: torch.device) -> tuple[float, float, float]:
        """Count, mean and volatility over all microbatches of all processes."""
        if self._pooled is None:
            self._pooled = _merge(_gather(_merge(torch.stack(self._collected)), device))
        count, mean, squares = self._pooled.tolist()
        return count, mean, (squares / max(count - int(self.unbiased), 1)) ** 0.5


def _moments(returns: Tensor) -> Tensor:  # (..., T) -> (3,)
    return torch.stack([x.double() for x in count_mean_squares(returns.detach().cpu().double().reshape(-1))])


def _merge(moments: Tensor) -> Tensor:  # (K, 3) -> (3,)
    """Moments of the union: squares about the common mean, never E[r^2] - E[r]^2."""
    count, mean, squares = moments.unbind(1)
    pooled = (count * mean).sum() / count.sum().clamp(min=1)
    return torch.stack([count.sum(), pooled, (squares + count * (mean - pooled).square()).sum()])


def _is_distributed() -> bool:
    return distributed.is_available() and distributed.is_initialized()


def _gather(moments: Tensor, device: torch.device) -> Tensor:  # (3,) -> (processes, 3)
    if not _is_distributed():
        return moments.unsqueeze(0)
    moments = moments.to(device)  # NCCL needs tensors on its device
    gathered = [torch.empty_like(moments) for _ in range(distributed.get_world_size())]
    distributed.all_gather(gathered, moments)
    return torch.stack(gathered).cpu()
