"""Rolling correlation, against pandas, plain PyTorch and torchrolling."""

import torch
from row import Call, Row, uniform
from torch import Tensor

from torchcommodity import ops


def pandas_correlation(panel: Tensor) -> Call:
    import pandas as pd

    frame = pd.DataFrame(panel.double().numpy())
    return lambda: frame.rolling(60).corr()


def torch_correlation(panel: Tensor) -> Call:
    def call() -> object:
        windows = panel.unfold(0, 60, 1)  # (T - 59, N, 60)
        centered = windows - windows.mean(-1, keepdim=True)
        unit = centered / centered.norm(dim=-1, keepdim=True)
        return unit @ unit.mT

    return call


def torchrolling_correlation(panel: Tensor) -> Call:
    import torchrolling

    left, right = torch.triu_indices(panel.shape[-1], panel.shape[-1], offset=1)  # each pair once, as in packed
    return lambda: torchrolling.rolling(panel[:, left], 60, dim=0).corr(panel[:, right])


PEERS = {
    "pandas rolling().corr()": pandas_correlation,
    "torch unfold and matmul": torch_correlation,
    "torchrolling, each pair once": torchrolling_correlation,
}

ROWS = (
    Row(
        "rolling_correlation",
        "w=60, (2500, 20)",
        uniform(2500, 20),
        lambda x: ops.rolling_correlation(x, 60),
        PEERS,
        goal=20,
    ),
    Row(
        "rolling_correlation_pairs",
        "w=60, (2500, 20), each pair once",
        uniform(2500, 20),
        lambda x: ops.rolling_correlation(x, 60, packed=True),
        PEERS,
        goal=20,
    ),
)
