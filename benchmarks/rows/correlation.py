"""Rolling correlation."""

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
        centred = windows - windows.mean(-1, keepdim=True)
        unit = centred / centred.norm(dim=-1, keepdim=True)
        return unit @ unit.mT

    return call


ROWS = (
    Row(
        "rolling_correlation",
        "w=60, (2500, 20)",
        uniform(2500, 20),
        lambda x: ops.rolling_correlation(x, 60),
        {"pandas rolling().corr()": pandas_correlation, "torch unfold and matmul": torch_correlation},
        target=20,
    ),
)
