"""Inputs of a model: prices, contract rolls, the futures curve, extra variances, prices of references, dates, bars.

Legend: B batch, T time, A rows ahead, N assets, H horizons, C contracts, X extra terms, R references.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar, overload

import torch
from torch import Tensor, nn

from torch_opkit import has_float64
from torchcommodity.models._har_config import HarConfig

Module = TypeVar("Module", bound=nn.Module)


class ModelInputs(NamedTuple):
    """Inputs of a model, without a batch axis; `Har` takes those of `unsqueeze`."""

    prices: Tensor  # (T, N)
    # (T + A, N) int64: month of a roll, 0 without one, -1 where the market is closed; the last A rows are ahead
    rolls: Tensor | None = None
    curve: Tensor | None = None  # (T, N, C) prices of nearby contracts
    extra_variances: Tensor | None = None  # (T, H, N, X) of `HarConfig.extra_terms`; NaN = no information
    references: Tensor | None = None  # (T, R) prices of `HarConfig.references`; NaN = missing
    days: Tensor | None = None  # (T,) int64, since 1970-01-01, for the season; None = no season
    bars: Tensor | None = None  # (T, N, 3) open, high and low, if `HarConfig.bars`; NaN = missing
    averages: Tensor | None = None  # (N,) bool: whether prices are averages of their period, for `calibrate`

    def before(self, stop: int) -> "ModelInputs":
        """Rows before `stop`, as known at that time; the roll calendar still extends A rows beyond the last price."""
        ahead = None if self.rolls is None else len(self.rolls) - len(self.prices)
        past = self.map(lambda x: x[:stop])
        rolls = None if self.rolls is None or ahead is None else self.rolls[: stop + ahead]
        return past._replace(rolls=rolls, averages=self.averages)

    def after(self, start: int) -> "ModelInputs":
        """Rows from `start` on."""
        return self.map(lambda x: x[start:])._replace(averages=self.averages)

    def to(self, device: str | torch.device) -> "ModelInputs":
        """Copy to a device; prices are float32 on a device without float64."""
        return self.map(lambda x: to_device(x, device))

    def unsqueeze(self) -> "ModelInputs":
        """With a batch axis of size one."""
        return self.map(lambda x: x.unsqueeze(0))

    def batch(self) -> tuple[Tensor | None, ...]:
        """The tensors of `unsqueeze` for `model(*inputs.batch())`."""
        return self.unsqueeze()[:7]

    def map(self, function: Callable[[Tensor], Tensor]) -> "ModelInputs":
        """With a function of every tensor that is there."""
        return ModelInputs(function(self.prices), *(None if x is None else function(x) for x in self[1:]))


@overload
def to_device(x: Tensor, device: str | torch.device) -> Tensor: ...
@overload
def to_device(x: Module, device: str | torch.device) -> Module: ...
def to_device(x: Tensor | nn.Module, device: str | torch.device) -> Tensor | nn.Module:
    """A Tensor on a device, or a module, which moves in place: float64 becomes float32 on a device without float64.

    Example:
        >>> to_device(torch.ones(2, dtype=torch.float64), "cpu").dtype
        torch.float64
    """
    narrow = not has_float64(device)
    if isinstance(x, nn.Module):
        return (x.float() if narrow else x).to(device)
    return x.to(device, torch.float32 if narrow and x.dtype == torch.float64 else x.dtype)


def check_inputs(inputs: ModelInputs, assets: int, config: HarConfig) -> None:
    """Raise ValueError unless shapes and dtypes, with a batch axis, are those of the model."""
    prices, rolls, curve, extra, references, days, bars, _ = inputs
    if prices.dim() != 3 or prices.shape[-1] != assets or not prices.is_floating_point():
        got = f"{tuple(prices.shape)} of {prices.dtype}"
        raise ValueError(f"Har: prices must be floating point (B, T, N) with N={assets}; got {got}")
    B, T, N = prices.shape
    if curve is not None and (curve.dim() != 4 or curve.shape[:-1] != prices.shape):
        got = f"{tuple(curve.shape)} with prices {tuple(prices.shape)}"
        raise ValueError(f"Har: curve must be (B, T, N, C) with prices (B, T, N); got {got}")
    if rolls is not None:
        if rolls.dtype != torch.int64 or rolls.dim() != 3 or rolls.shape[0] != B or rolls.shape[2] != N:
            raise ValueError(f"Har: rolls must be int64 (B, T + A, N); got {tuple(rolls.shape)} of {rolls.dtype}")
        min_rows = T + config.horizons[-1]
        if rolls.shape[1] < min_rows:
            raise ValueError(f"Har: rolls must reach the longest horizon, {min_rows} rows; got {rolls.shape[1]}")
    R = len(config.references)
    if (R or references is not None) and (references is None or tuple(references.shape) != (B, T, R)):
        rule = f"(B, T, R) = {(B, T, R)}, for {', '.join(config.references)}" if R else "None: the model has none"
        received = "none" if references is None else tuple(references.shape)
        raise ValueError(f"Har: references must be {rule}; got {received}")
    if days is not None and (days.dtype != torch.int64 or tuple(days.shape) != (B, T)):
        raise ValueError(f"Har: days must be int64 (B, T) = {(B, T)}; got {tuple(days.shape)} of {days.dtype}")
    if config.bars != (bars is not None) or (bars is not None and tuple(bars.shape) != (B, T, N, 3)):
        rule = (
            f"(B, T, N, 3) = {(B, T, N, 3)}: open, high, low" if config.bars else "None: the model was fitted without"
        )
        raise ValueError(f"Har: bars must be {rule}; got {'none' if bars is None else tuple(bars.shape)}")
    names, shape = config.extra_terms, (B, T, len(config.horizons), N, len(config.extra_terms))
    if extra is None and not names:
        return
    if extra is None or not names or not extra.is_floating_point() or tuple(extra.shape) != shape:
        rule = f"(B, T, H, N, X) = {shape}, for the extra terms {', '.join(names)}"
        expected = rule if names else "None: the model has no extra terms"
        got = "none" if extra is None else f"{tuple(extra.shape)} of {extra.dtype}"
        raise ValueError(f"Har: extra_variances must be {expected}; got {got}")
