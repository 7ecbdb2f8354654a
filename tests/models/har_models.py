"""Real prices, and models whose head is not zero."""

import torch
from torch import Tensor

from torchcommodity import data
from torchcommodity.models import HarConfig, HarLstm, HarLstmConfig

ROWS = 700


def two_symbols() -> Tensor:  # (1, T, 2)
    """Spot oil and a share index with different holidays; oil with a negative price as on 20 April 2020."""
    panel = data.embedded(["WTI", "BRENT"]).between("2012-01-01", "2016-12-31")
    values = panel.values.plain().clone()[:ROWS]
    values[400, 0], values[401, 0] = -37.63, 0.0
    return values[None]


def with_random_head(assets: int = 2, seed: int = 0, **har: object) -> HarLstm:
    """A `HarLstm` whose corrections are not zero."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = HarLstm(assets, HarLstmConfig(HarConfig(**har)))  # type: ignore[arg-type]
        torch.nn.init.normal_(model.head.weight)
    return model.eval()


def all_rows(model: HarLstm, prices: Tensor) -> Tensor:  # (B, T, N) -> (B, T, H, N, Q)
    har_output = model.har(prices)
    quantiles: Tensor = model.har.quantiles(har_output, model.correction(har_output))
    return quantiles


def baseline(model: HarLstm, prices: Tensor) -> Tensor:  # (B, T, N) -> (B, T, H, N, Q)
    quantiles: Tensor = model.har.quantiles(model.har(prices))
    return quantiles


def equal_with_nan(a: Tensor, b: Tensor) -> bool:
    return torch.equal(a.isnan(), b.isnan()) and torch.equal(a.nan_to_num(), b.nan_to_num())
