"""A layer of torch.jit inside a model: it takes neither hooks nor masks, and is left as it is."""

import pytest
import torch
from torch import nn

from torchcommodity.optimize import fine_tune, profile, prune, sparsity

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # of torch 2.13
BATCHES = [(torch.ones(4, 3), torch.zeros(4, 2))]


@pytest.fixture
def model() -> nn.Module:
    scripted = torch.jit.script(nn.Linear(8, 8))
    return nn.Sequential(nn.Linear(3, 8), scripted, nn.Linear(8, 2))


def test_profile_times_it_with_its_parent(model: nn.Module) -> None:
    stages = profile(model, BATCHES, steps=1, warmup=1, stacks=False).stages
    assert {"0", "2", "rest of forward"} <= stages.keys()
    assert "1" not in stages


@pytest.mark.parametrize("permanent", [True, False])
def test_pruning_leaves_it_out_with_the_reason(model: nn.Module, permanent: bool) -> None:
    sparse = prune(model, 0.5, permanent=permanent)
    rows = {row.name: row for row in sparsity(sparse).layers}
    assert rows["1.weight"].zeros == 0
    assert "torch.jit" in rows["1.weight"].note
    assert rows["0.weight"].zeros + rows["2.weight"].zeros == 20


def test_fine_tuning_keeps_the_zeros_of_the_others(model: nn.Module) -> None:
    sparse = prune(model, 0.5)
    tuned = fine_tune(sparse, BATCHES, nn.functional.mse_loss, epochs=1)
    assert torch.equal(tuned.get_parameter("0.weight") == 0, sparse.get_parameter("0.weight") == 0)
