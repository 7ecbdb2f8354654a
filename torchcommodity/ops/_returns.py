"""Log-returns of prices with gaps."""

import torch
from torch import Tensor

from torch_opkit import Past, live
from torch_opkit.arguments import check_panel
from torchcommodity.ops._scan.linear_recurrence import carried_recurrence


def _update(past: Past, prices: Tensor) -> Tensor:
    check_panel("log_returns", prices=prices)
    valid = torch.isfinite(prices) & (prices > 0)
    logs = torch.where(valid, prices, 1.0).log()
    # forward fill as a recurrence: y_t = missing_t y_{t-1} + valid_t ln p_t
    last = carried_recurrence(past, "last", (~valid).to(logs), torch.where(valid, logs, 0.0))
    has_previous = valid & (past.cumsum("valid", valid) > 1)
    return torch.where(has_previous, logs - past.lag("previous", last), torch.nan)


@live(_update)
def log_returns(
    prices: Tensor,  # (..., T, N)
) -> Tensor:  # (..., T, N)
    """Log-return of each price against the last valid price before it: r_t = ln p_t - ln p_s, s < t.

    Args:
        prices: Prices in any unit; NaN where missing. Zero, negative and infinite prices count as missing too.

    Returns:
        Log-returns, dimensionless. NaN where the price is missing and up to the first valid price. A return after a gap
        spans the gap, so the returns of a column sum to ln(last price / first price). Causal.

    Raises:
        ValueError, TypeError: If `prices` is not a floating-point panel.

    Devices: those of `linear_recurrence`. Differentiable; a missing price has gradient zero, the gradient of a NaN
    return is ignored.

    References:
        Campbell, Lo, MacKinlay (1997). The Econometrics of Financial Markets, section 1.4. Princeton University Press.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.log_returns(torch.tensor([[50.0], [55.0], [-37.63], [44.0]])).squeeze(-1)
        tensor([    nan,  0.0953,     nan, -0.2231])
    """
    return _update(Past(), prices)
