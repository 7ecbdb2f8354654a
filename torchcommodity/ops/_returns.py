"""Log-returns of raw prices, a formula on the linear recurrence: gaps are bridged."""

import torch
from torch import Tensor

from torchcommodity.opkit.arguments import check_panel
from torchcommodity.ops._scan.linear_recurrence import linear_recurrence


def log_returns(
    prices: Tensor,  # (..., T, N)
) -> Tensor:  # (..., T, N)
    """Log-return of each price over the last positive, finite price before it: r_t = ln p_t - ln p_s, s < t.

    Args:
        prices: in any unit; NaN where missing. A price that is zero, negative or infinite has no logarithm and counts
            as missing.

    Returns:
        r, a log-return (no unit): NaN where today's price is missing and before the second price. A return after a gap
        spans the whole gap, so the finite returns of a column sum to ln(last price / first price). Causal.

    Raises:
        ValueError, TypeError: `prices` is no floating-point panel.

    Devices: those of `linear_recurrence`. Differentiable; a missing price gets gradient zero, a NaN return takes no
        part.

    References:
        Campbell, Lo, MacKinlay (1997). The Econometrics of Financial Markets, section 1.4. Princeton University Press.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.log_returns(torch.tensor([[50.0], [55.0], [-37.63], [44.0]])).squeeze(-1)
        tensor([    nan,  0.0953,     nan, -0.2231])
    """
    check_panel("log_returns", prices=prices)
    present = torch.isfinite(prices) & (prices > 0)
    logs = torch.where(present, prices, 1.0).log()
    last = linear_recurrence(
        (~present).to(logs), torch.where(present, logs, 0.0)
    )  # forward fill: y = missing y + present x
    before = torch.cat([torch.zeros_like(last[..., :1, :]), last[..., :-1, :]], dim=-2)
    second = present & (present.cumsum(-2) > 1)
    return torch.where(second, logs - before, torch.nan)
