"""Batches of `data.WindowDataset`: their inputs and targets reach the model and the loss, their rows neither."""

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from torchcommodity import data, losses, ops, optimize

LEVELS = torch.tensor([0.1, 0.5, 0.9])


class Forecaster(nn.Module):
    """An optional second argument, as of `nn.LSTM`, must not receive the targets."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(2, 8, batch_first=True), nn.Linear(8, 6)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor] | None = None) -> Tensor:
        return self.head(self.lstm(x, state)[0][:, -1]).view(-1, 1, 2, 3)  # type: ignore[no-any-return]


def loss_fn(quantiles: Tensor, target: Tensor) -> Tensor:
    return losses.pinball(quantiles, target, LEVELS)


@pytest.fixture(scope="module")
def batches() -> DataLoader[data.Window]:
    panel = data.read("embedded", symbols=["BRENT", "HENRY_HUB"]).between("2018-01-01", "2018-12-31")
    returns = ops.log_returns(panel.values.plain()).nan_to_num(0)
    return DataLoader(data.WindowDataset(panel, lookback=20, horizons="1w", features=returns), batch_size=64)


def test_window_batches_are_profiled_with_and_without_a_loss(batches: DataLoader[data.Window]) -> None:
    training = optimize.profile(Forecaster(), batches, loss_fn=loss_fn, steps=1, warmup=0, stacks=False)
    inference = optimize.profile(Forecaster(), batches, steps=1, warmup=0, stacks=False)
    assert "backward" in training.stages
    assert "backward" not in inference.stages


def test_window_batches_prune_and_distill(batches: DataLoader[data.Window]) -> None:
    model = Forecaster()
    sparse = optimize.prune(model, 0.5, method="gradient", batches=batches, loss_fn=loss_fn)
    assert optimize.sparsity(sparse).share == pytest.approx(0.5, abs=0.01)
    assert optimize.importance(model, batches, loss_fn).rows.shape == (20,)
    result = optimize.distill(model, Forecaster(), batches, levels=LEVELS, epochs=1)
    assert len(result.losses) == 1
