"""Rolling correlation, against pandas, plain PyTorch and torchrolling; DCC, against a loop and scipy."""

import numpy as np
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


def residuals() -> tuple[Tensor, ...]:
    """Simulated residuals of DCC with a = 0.03 and b = 0.95 around correlations of 1/2; not prices."""
    noise = torch.randn(2500, 10, 1, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    target = (torch.eye(10, dtype=torch.double) + 1) / 2
    q, rows = target, []
    for e in noise:
        scale = q.diagonal().sqrt()
        z = torch.linalg.cholesky(q / torch.outer(scale, scale)) @ e
        rows.append(z.squeeze(-1))
        q = 0.02 * target + 0.03 * z @ z.mT + 0.95 * q
    return (torch.stack(rows),)


def scipy_dcc(panel: Tensor) -> Call:
    from scipy.optimize import minimize

    z = panel.numpy()
    target = z.T @ z / len(z)

    def loss(weights: np.ndarray) -> float:
        (a, b), q, total = weights, target, 0.0
        for row in z:
            scale = np.sqrt(np.diag(q))
            correlation = q / np.outer(scale, scale)
            total += np.linalg.slogdet(correlation)[1] + row @ np.linalg.solve(correlation, row)
            q = (1 - a - b) * target + a * np.outer(row, row) + b * q
        return total

    bounds = [(0, 0.03999), (0, 0.96)]  # a + b < 1
    return lambda: minimize(loss, [0.02, 0.9], method="L-BFGS-B", bounds=bounds)


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
    Row(
        "dcc_score",
        "(2500, 10) f64",
        residuals,
        lambda z: ops.dcc_fit(z),
        {"scipy L-BFGS-B on a numpy loop": scipy_dcc},
        name="dcc_fit",
    ),
)
