"""One process of several that train on the pooled Sharpe ratio; rank 0 prints the gradient as JSON.

`test_pooled_sharpe.py` starts it: `torchrun --nproc-per-node 2 distributed_sharpe.py`.
"""

import json
import os
from contextlib import nullcontext

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from torchcommodity.losses import PooledSharpe

SIZES = (5, 1, 7, 3)  # sequences in each microbatch, unequal as in the last batch of an epoch


def make_model() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2), nn.Softmax(-1)).double()


def microbatches() -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(sum(SIZES), 6, 4, generator=generator, dtype=torch.double)
    returns = 0.001 + 0.02 * torch.randn(sum(SIZES), 6, 2, generator=generator, dtype=torch.double)
    returns[2, 3] = torch.nan
    return list(zip(features.split(SIZES), returns.split(SIZES)))


def portfolio_returns(model: nn.Module, features: Tensor, returns: Tensor) -> Tensor:
    weights = model(features)
    finite = torch.where(returns.isnan(), 0.0, returns)  # 0 x NaN is NaN in a gradient
    return torch.where(returns.isnan().any(-1), torch.nan, (weights * finite).sum(-1))


def accumulate(model: nn.Module, batches: list[tuple[Tensor, Tensor]], pool: PooledSharpe) -> float:
    """Accumulate the gradient of the pooled loss; return this process's share of the loss."""
    with torch.no_grad():
        for batch in batches:
            pool.collect(portfolio_returns(model, *batch))
    total = 0.0
    for k, batch in enumerate(batches):
        last = k == len(batches) - 1
        context = nullcontext() if last or not isinstance(model, DistributedDataParallel) else model.no_sync()
        with context:
            loss = pool.loss(portfolio_returns(model, *batch))
            loss.backward()
        total += loss.item()
    return total


def main() -> None:
    distributed.init_process_group("gloo")
    rank, processes = distributed.get_rank(), distributed.get_world_size()
    model = DistributedDataParallel(make_model())
    loss = torch.tensor(accumulate(model, microbatches()[rank::processes], PooledSharpe()), dtype=torch.double)
    distributed.all_reduce(loss)
    if rank == 0:
        gradients = [p.grad.flatten().tolist() for p in model.parameters() if p.grad is not None]
        print(json.dumps([loss.item(), gradients]), flush=True)  # noqa: T201
    distributed.barrier()
    os._exit(0)  # without destructors: those of gloo abort now and then, "terminate called without an active exception"


if __name__ == "__main__":
    main()
