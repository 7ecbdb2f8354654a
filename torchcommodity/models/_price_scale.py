"""Price scale: the map of a price into the model, ln P or asinh(P / S), and back; nothing else knows of it.

    y = P                       where S is NaN: ln y = ln P; a price of zero or below is missing
    y = exp(asinh(P / S))       elsewhere, for prices of any sign: y is positive, and ln y = asinh(P / S)

All that takes logs of prices runs on y. Near zero asinh(P / S) is linear, far from it a log: the changes of a spread
vary with its level, but less than in proportion.

Legend: T time, N assets, C contracts.
"""

import torch
from torch import Tensor

from torchcommodity.models._inputs import ModelInputs

MEAN_CHANGES = 25.0  # of S: a usual change of asinh(P / S) is 0.04 or less, in rows of any frequency
LARGEST_CHANGE = 0.25  # of asinh(P / S) in variances and features, six usual ones: in place of `HarConfig.cap`


def fit_price_scale(prices: Tensor, signed: Tensor) -> Tensor | None:  # (T, N), (N,) bool -> (N,)
    """S_n = 25 mean |P_t - P_{t-1}| over the symbol's own rows, NaN for the symbols in logs; None if all are.

    S is zero for a symbol whose prices never change, and NaN without two prices.

    >>> prices = torch.tensor([[1.0, 5.0], [-1.0, 5.0], [torch.nan, 6.0], [0.0, 6.0]])
    >>> fit_price_scale(prices, torch.tensor([True, False]))
    tensor([37.5000,     nan])
    """
    if not signed.any():
        return None
    scale = torch.full_like(prices[0], torch.nan)
    for n in signed.nonzero()[:, 0].tolist():
        own = prices[:, n]
        scale[n] = MEAN_CHANGES * own[own.isfinite()].diff().abs().mean()
    return scale


def positive_prices(prices: Tensor, scale: Tensor | None) -> Tensor:
    """y of prices, whose scale has their last axes: positive where there is a price, any order as in P.

    >>> positive_prices(torch.tensor([0.0, 4.0]), torch.tensor([2.0, torch.nan]))
    tensor([1., 4.])
    """
    if scale is None:
        return prices
    is_log, scale = _split(scale, prices)
    u = prices / scale
    # exp(asinh(u)) without a difference of large numbers for u << 0, and of operators that ONNX has in double
    y = torch.where(u < 0, -u, u) + (1 + u.square()).sqrt()
    return torch.where(is_log, prices, torch.where(u < 0, y.reciprocal(), y))


def price_after(last: Tensor, change: Tensor, scale: Tensor | None) -> Tensor:
    """The price after a change of ln y: P exp(change), or S sinh(asinh(P / S) + change).

    >>> price_after(torch.tensor([-3.0, 4.0]), torch.tensor([0.5, 0.5]), torch.tensor([2.0, torch.nan]))
    tensor([-1.5040,  6.5949])
    """
    log_price = last * change.exp()
    if scale is None:
        return log_price
    is_log, scale = _split(scale, last)
    return torch.where(is_log, log_price, scale * ((last / scale).asinh() + change).sinh())


def scale_change(last: Tensor, price: Tensor, scale: Tensor | None) -> Tensor:
    """The change of ln y from one price to another, the inverse of `price_after`; NaN where there is no y.

    >>> scale_change(torch.tensor([-3.0]), torch.tensor([0.0]), torch.tensor([2.0]))
    tensor([1.1948])
    """
    y = (positive_prices(x, scale) for x in (last, price))
    before, after = (torch.where((x > 0) & (x < torch.inf), x, torch.nan) for x in y)
    return (after / before).log()


def scale_inputs(inputs: ModelInputs, scale: Tensor | None) -> ModelInputs:
    """Inputs with y in place of prices, and of the nearby contracts.

    The contracts of a spread are the nearby spreads C_1, C_2, ..., of any sign. After n rolls it is expected at
    P + C_{1+n} - C_1: these prices take the place of the contracts, so that ln y of one less ln y of the front is the
    expected change. Without a price on the row, C_1 stands for it.

    Args:
        inputs: with or without a batch axis.
        scale: (N,) S, NaN = log.
    """
    if scale is None:
        return inputs
    prices, curve = inputs.prices, inputs.curve
    if curve is not None:
        front, signed = curve[..., :1], scale.unsqueeze(-1)
        base = torch.where(prices.isfinite(), prices, front.squeeze(-1)).unsqueeze(-1)
        curve = torch.where(signed.to(curve).isnan(), curve, positive_prices(base + curve - front, signed))
    return inputs._replace(prices=positive_prices(prices, scale), curve=curve)


def _split(scale: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
    """Which symbols are in logs, and the scale of the others, with 1 for those."""
    scale = scale.to(like)
    is_log = scale.isnan()
    return is_log, torch.where(is_log, 1.0, scale)
