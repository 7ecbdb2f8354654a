"""Batches of a forecaster: windows of real prices, and the returns that followed."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from torchcommodity.data import targets
from torchcommodity.forecast import Forecaster
from torchcommodity.losses import pinball
from torchcommodity.opkit.arguments import current_operation, raise_invalid
from torchcommodity.optimize._batches import check_batches
from torchcommodity.optimize._calls import Loss
from torchcommodity.training import ModelInputs

ROWS, WINDOWS = 252, 16  # rows of a window after the warm-up; number of windows


def batches_and_loss(model: Any, batches: Any, loss_fn: Loss | None) -> tuple[Any, Loss]:
    """Batches and their loss: as they are for a module, made of prices for a forecaster with ModelInputs."""
    if isinstance(batches, ModelInputs) and isinstance(model, Forecaster):
        levels = torch.tensor(model.levels, dtype=torch.double)
        default: Loss = lambda quantiles, target: pinball(quantiles.double(), target, levels)  # noqa: E731
        return list(price_windows(model, batches)), loss_fn or default
    return batches, check_loss_batches(batches, loss_fn)


def check_loss_batches(batches: Any, loss_fn: Loss | None) -> Loss:
    """Return the loss of the batches of a module, or raise if either is missing."""
    check_batches(batches, repeated=False)
    if loss_fn is None:
        raise_invalid(current_operation(), "batches need a loss_fn(output, target)", loss_fn=None)
    return loss_fn


def price_windows(forecaster: Forecaster, inputs: ModelInputs) -> Iterator[tuple[Any, Tensor]]:
    """Evenly spaced windows in order of time: arguments of the model, and log-returns (1, H, N) after the last row."""
    har = forecaster.model.har.config
    rows, ahead = har.warmup + ROWS, har.horizons[-1]
    total = len(inputs.prices)
    if total < rows + ahead:
        rule = f"inputs must have at least {rows + ahead} rows: a warm-up, a window and the longest horizon"
        raise_invalid(current_operation(), rule, rows=total)
    realized = targets(inputs.prices.double(), har.horizons)
    ends = torch.linspace(rows, total - ahead, min(WINDOWS, total - ahead - rows + 1)).long().tolist()
    for end in ends:
        prices, rolls, curve = inputs.before(end)[:3]
        tail = None if rolls is None else rolls[end - rows :]  # to the end: the roll calendar lies ahead
        window = ModelInputs(prices[end - rows :], tail, None if curve is None else curve[end - rows :])
        yield window.batch(), realized[end - 1 : end]
