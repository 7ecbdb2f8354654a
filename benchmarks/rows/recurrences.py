"""Linear recurrences along time, against SciPy and plain PyTorch."""

import torch
from row import Call, Row, uniform
from torch import Tensor

from torchcommodity import ops


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


ROWS = (
    Row(
        "linear_recurrence",
        "constant factor, (2500, 1000)",
        uniform(2500, 1000),
        lambda x: ops.linear_recurrence(x.new_full(x.shape, 0.9), x),
        {"scipy lfilter": scipy_filter, "torch loop over rows": torch_loop},
    ),
)
