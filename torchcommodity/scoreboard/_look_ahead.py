"""Check of a baseline for look-ahead: forecasts must not change with later prices."""

import torch
from torch import Tensor

from torchcommodity.models import HarConfig
from torchcommodity.training import Baseline, ModelInputs


def check_look_ahead(name: str, baseline: Baseline, inputs: ModelInputs, start: int, config: HarConfig) -> None:
    """Change the prices and the curve after the middle of a test block, and compare the forecasts up to the middle.

    Args:
        name: of the model, for the error message.
        baseline: called twice.
        inputs: up to the last row of the block.
        start: first row of the block.
        config: settings of the forecasts.

    Raises:
        ValueError: a forecast depends on a later price.
    """
    middle = (start + len(inputs.prices)) // 2
    curve = None if inputs.curve is None else _change(inputs.curve, middle)
    variant = inputs._replace(prices=_change(inputs.prices, middle), curve=curve)
    before, after = (baseline(rows, start, config).quantiles[: middle + 1 - start] for rows in (inputs, variant))
    close = torch.isclose(before, after, rtol=1e-6, atol=1e-9, equal_nan=True).flatten(1).all(1)
    if not close.all():
        row = start + int((~close).nonzero()[0])
        raise ValueError(
            f"{name}: a forecast must not depend on later prices; got one from row {row} that changes with prices "
            f"after row {middle}"
        )


def _change(values: Tensor, row: int) -> Tensor:
    """The later rows backwards, at three times the price."""
    return torch.cat([values[: row + 1], 3 * values[row + 1 :].flip(0)])
