"""The pooled Sharpe ratio in parts has the gradient of the whole: over microbatches, and over two processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import sharpe_ranks
import torch
from torch import Tensor, distributed

from torchcommodity.losses import PooledSharpe, sharpe_loss

ROOT = Path(__file__).parents[2]


def whole(**how: float) -> tuple[float, list[Tensor]]:
    network = sharpe_ranks.model()
    features, returns = (torch.cat(parts) for parts in zip(*sharpe_ranks.microbatches()))
    loss = sharpe_loss(sharpe_ranks.made(network, features, returns), pooled=True, **how)  # type: ignore[arg-type]
    return loss.item(), list(torch.autograd.grad(loss, list(network.parameters())))


@pytest.mark.parametrize("how", [{}, {"ddof": 0}, {"eps": 0.01, "risk_free": 0.002}], ids=str)
def test_unequal_microbatches_give_the_gradient_of_the_whole(how: dict[str, float]) -> None:
    network = sharpe_ranks.model()
    share = sharpe_ranks.accumulate(network, sharpe_ranks.microbatches(), PooledSharpe(**how))  # type: ignore[arg-type]
    expected, gradients = whole(**how)
    assert share == pytest.approx(expected, rel=1e-12)
    for parameter, gradient in zip(network.parameters(), gradients):
        assert parameter.grad is not None
        assert torch.allclose(parameter.grad, gradient, rtol=1e-12, atol=1e-12)


def test_the_mean_over_microbatches_is_another_gradient() -> None:
    """What the two passes are for: the usual accumulation is wrong by more than rounding."""
    network = sharpe_ranks.model()
    for features, returns in sharpe_ranks.microbatches():
        (sharpe_loss(sharpe_ranks.made(network, features, returns), pooled=True) / 4).backward()
    assert not torch.allclose(next(network.parameters()).grad, whole()[1][0], rtol=0.05)  # type: ignore[arg-type]


@pytest.mark.skipif(not distributed.is_available(), reason="this torch knows no processes")
def test_two_processes_are_one() -> None:
    """`DistributedDataParallel` averages over processes; the loss undoes it."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, str(ROOT / "tests" / "sharpe_ranks.py")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    loss, gradients = json.loads(done.stdout.strip().splitlines()[-1])
    expected, right = whole()
    assert loss == pytest.approx(expected, rel=1e-12)
    for found, gradient in zip(gradients, right):
        assert found == pytest.approx(gradient.flatten().tolist(), rel=1e-12, abs=1e-12)


def test_returns_that_stand_still() -> None:
    weight = torch.tensor(0.5, requires_grad=True)
    pool = PooledSharpe()
    pool.collect(torch.full((3,), 0.01))
    pool.loss(2 * weight * torch.full((3,), 0.01)).backward()
    assert weight.grad is not None
    assert weight.grad.isfinite()


def test_two_passes_that_differ_are_refused() -> None:
    pool = PooledSharpe()
    pool.collect(torch.tensor([0.01, 0.02]))
    with pytest.raises(ValueError, match="both passes must give the same returns"):
        pool.loss(torch.tensor([0.01, 0.03]))
    pool.loss(torch.tensor([0.01, 0.02]))
    with pytest.raises(ValueError, match="expected the 1 parts that were collected; got one more"):
        pool.loss(torch.tensor([0.01, 0.02]))
    with pytest.raises(ValueError, match="expected all parts to be collected before the first loss"):
        pool.collect(torch.tensor([0.01, 0.02]))
