"""`PooledSharpe`: microbatches and processes give the gradient of the pooled loss."""

import json
import os
import subprocess
import sys
from pathlib import Path

import distributed_sharpe
import pytest
import torch
from torch import Tensor, distributed

from torchcommodity.losses import PooledSharpe, sharpe_loss

SCRIPT = Path(distributed_sharpe.__file__)
ROOT = Path(__file__).parents[2]


def pooled(**options: float) -> tuple[float, list[Tensor]]:
    """Loss and gradients of all microbatches in one batch."""
    model = distributed_sharpe.make_model()
    features, returns = (torch.cat(parts) for parts in zip(*distributed_sharpe.microbatches()))
    net = distributed_sharpe.portfolio_returns(model, features, returns)
    loss = sharpe_loss(net, pooled=True, **options)  # type: ignore[arg-type]
    return loss.item(), list(torch.autograd.grad(loss, list(model.parameters())))


@pytest.mark.parametrize("options", [{}, {"unbiased": False}, {"epsilon": 0.01, "risk_free": 0.002}], ids=str)
def test_pooled_sharpe_accumulates_unequal_microbatches(options: dict[str, float]) -> None:
    model = distributed_sharpe.make_model()
    pool = PooledSharpe(**options)  # type: ignore[arg-type]
    loss = distributed_sharpe.accumulate(model, distributed_sharpe.microbatches(), pool)
    expected, gradients = pooled(**options)
    assert loss == pytest.approx(expected, rel=1e-12)
    for parameter, gradient in zip(model.parameters(), gradients):
        assert parameter.grad is not None
        assert torch.allclose(parameter.grad, gradient, rtol=1e-12, atol=1e-12)


def test_pooled_sharpe_differs_from_the_mean_over_microbatches() -> None:
    model = distributed_sharpe.make_model()
    for features, returns in distributed_sharpe.microbatches():
        net = distributed_sharpe.portfolio_returns(model, features, returns)
        (sharpe_loss(net, pooled=True) / 4).backward()
    assert not torch.allclose(next(model.parameters()).grad, pooled()[1][0], rtol=0.05)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.skipif(not distributed.is_available(), reason="torch is built without torch.distributed")
def test_pooled_sharpe_over_two_processes() -> None:
    """`DistributedDataParallel` averages over processes; `averaged=True` undoes it."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(SCRIPT)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert process.returncode == 0, process.stderr[-2000:]
    loss, gradients = json.loads(process.stdout.strip().splitlines()[-1])
    expected_loss, expected_gradients = pooled()
    assert loss == pytest.approx(expected_loss, rel=1e-12)
    for gradient, expected in zip(gradients, expected_gradients):
        assert gradient == pytest.approx(expected.flatten().tolist(), rel=1e-12, abs=1e-12)


def test_pooled_sharpe_gradient_is_finite_at_zero_variance() -> None:
    weight = torch.tensor(0.5, requires_grad=True)
    pool = PooledSharpe()
    pool.collect(torch.full((3,), 0.01))
    pool.loss(2 * weight * torch.full((3,), 0.01)).backward()
    assert weight.grad is not None
    assert weight.grad.isfinite()


def test_pooled_sharpe_rejects_passes_that_differ() -> None:
    pool = PooledSharpe()
    pool.collect(torch.tensor([0.01, 0.02]))
    with pytest.raises(ValueError, match="both passes must give the same returns"):
        pool.loss(torch.tensor([0.01, 0.03]))
    pool.loss(torch.tensor([0.01, 0.02]))
    with pytest.raises(ValueError, match="1 microbatches were collected; got one more"):
        pool.loss(torch.tensor([0.01, 0.02]))
    with pytest.raises(ValueError, match="collect every microbatch before the first loss"):
        pool.collect(torch.tensor([0.01, 0.02]))
