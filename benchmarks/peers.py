"""The same work by other libraries: each function takes the float32 panel and gives the call to be timed."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

Call = Callable[[], object]


def _columns(panel: Tensor) -> np.ndarray:
    return np.ascontiguousarray(panel.numpy().T, dtype=np.float64)


def talib_indicators(panel: Tensor) -> Call:
    import talib

    columns = _columns(panel)

    def call() -> object:
        return [(talib.SMA(x, 10), talib.SMA(x, 30), talib.RSI(x, 14), talib.BBANDS(x, 20, 2, 2)) for x in columns]

    return call


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


def arch_variance(panel: Tensor) -> Call:
    from arch.univariate.recursions import garch_recursion

    columns = _columns(panel)
    squares, signs, variances = columns**2, np.sign(columns), np.empty_like(columns)
    parameters, bounds = np.array([0.05, 0.05, 0.9]), np.tile([0.0, 1e9], (columns.shape[1], 1))

    def call() -> object:
        for square, sign, variance in zip(squares, signs, variances):
            garch_recursion(parameters, square, sign, variance, 1, 0, 1, len(square), 1.0, bounds)
        return variances

    return call


def scipy_filter(panel: Tensor) -> Call:
    from scipy.signal import lfilter

    rows = panel.numpy()
    return lambda: lfilter([1.0], [1.0, -0.9], rows, axis=0)


def torch_loop(panel: Tensor) -> Call:
    def call() -> object:
        y, rows = torch.zeros(panel.shape[1]), []
        for row in panel:
            y = 0.9 * y + row
            rows.append(y)
        return torch.stack(rows)

    return call


def statsmodels_decompose(panel: Tensor) -> Call:
    from statsmodels.tsa.seasonal import seasonal_decompose

    columns = _columns(panel)
    return lambda: [seasonal_decompose(x, period=12) for x in columns]
