"""One of several processes that train by the pooled Sharpe ratio; the first prints the gradient as JSON.

Started by torchrun from test_losses_pooled.py: `torchrun --nproc-per-node 2 sharpe_ranks.py`.
"""

import json
from contextlib import nullcontext

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from torchcommodity.losses import PooledSharpe

SIZES = (5, 1, 7, 3)  # sequences in each microbatch: unequal, as the last of an epoch is


def model() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2), nn.Softmax(-1)).double()


def microbatches() -> list[tuple[Tensor, Tensor]]:
    random = torch.Generator().manual_seed(1)
    features = torch.randn(sum(SIZES), 6, 4, generator=random, dtype=torch.double)
    returns = 0.001 + 0.02 * torch.randn(sum(SIZES), 6, 2, generator=random, dtype=torch.double)
    returns[2, 3] = torch.nan
    return list(zip(features.split(SIZES), returns.split(SIZES)))


def made(network: nn.Module, features: Tensor, returns: Tensor) -> Tensor:
    weights = network(features)
    present = torch.where(returns.isnan(), 0.0, returns)  # 0 x NaN is NaN in a gradient
    return torch.where(returns.isnan().any(-1), torch.nan, (weights * present).sum(-1))


def accumulate(network: nn.Module, parts: list[tuple[Tensor, Tensor]], pool: PooledSharpe) -> float:
    """Leave the gradient of the pooled loss on the network; return this process's share of the loss."""
    with torch.no_grad():
        for part in parts:
            pool.collect(made(network, *part))
    share = 0.0
    for k, part in enumerate(parts):
        last = k == len(parts) - 1
        quiet = nullcontext() if last or not isinstance(network, DistributedDataParallel) else network.no_sync()
        with quiet:
            loss = pool.loss(made(network, *part))
            loss.backward()
        share += loss.item()
    return share


def main() -> None:
    distributed.init_process_group("gloo")
    rank, world = distributed.get_rank(), distributed.get_world_size()
    network = DistributedDataParallel(model())
    share = torch.tensor(accumulate(network, microbatches()[rank::world], PooledSharpe()), dtype=torch.double)
    distributed.all_reduce(share)
    if rank == 0:
        gradients = [p.grad.flatten().tolist() for p in network.parameters() if p.grad is not None]
        print(json.dumps([share.item(), gradients]))  # noqa: T201
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
