"""Numbers given as text or as a bool are refused in words."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from torchcommodity import optimize

MODEL, X = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), torch.ones(5, 3)
BATCHES, LOSS = [(X, torch.zeros(5, 2))], nn.functional.mse_loss
CALLS: dict[str, Callable[[Any], Any]] = {
    "prune: amount": lambda value: optimize.prune(MODEL, value),
    "prune_units: amount": lambda value: optimize.prune_units(MODEL, value, example=X),
    "prune_units: units": lambda value: optimize.prune_units(MODEL, units=value, example=X),
    "fine_tune: learning_rate": lambda value: optimize.fine_tune(MODEL, BATCHES, LOSS, learning_rate=value),
    "distill: weight": lambda value: optimize.distill(MODEL, MODEL, BATCHES, weight=value),
    "distill: temperature": lambda value: optimize.distill(
        MODEL, MODEL, BATCHES, loss="temperature", temperature=value
    ),
    "distill: learning_rate": lambda value: optimize.distill(MODEL, MODEL, BATCHES, loss=LOSS, learning_rate=value),
    "profile: steps": lambda value: optimize.profile(MODEL, BATCHES, steps=value),
    "compile: rounds": lambda value: optimize.compile(MODEL, BATCHES, rounds=value),
}


@pytest.mark.parametrize("value", ["1", True])
@pytest.mark.parametrize("name", CALLS)
def test_text_and_bool_are_no_numbers(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"^{name} must be an? (number|int); got .*{value!r}$"):
        CALLS[name](value)
