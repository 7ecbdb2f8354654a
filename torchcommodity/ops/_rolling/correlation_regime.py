"""When the structure of correlations changes: how far it moved, and a running number of the regime."""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from torchcommodity.opkit import Bad, Cases, Golden, Op, Sample
from torchcommodity.opkit.arguments import check_integer, check_panel, raise_invalid


class CorrelationRegime(NamedTuple):
    shift: Tensor  # (..., T)
    regime: Tensor  # (..., T) int64


def correlation_regime(
    correlation: Tensor,  # (..., T, N, N), or (..., T, P) if packed
    threshold: float = 0.3,
    lag: int = 21,
    *,
    packed: bool = False,
) -> CorrelationRegime:
    """Regimes of a correlation structure: shift_t = mean over i != j of |r_ij(t) - r_ij(t - lag)|; the number of the
    regime starts at 0 and rises by one when shift_t > `threshold`, at most once in `lag` rows.

    Args:
        correlation: such as `rolling_correlation` gives; without unit.
        threshold: the shift that makes a new regime, >= 0.
        lag: rows between the two structures, >= 1. 21 rows are a month of trading days.
        packed: the last axis holds each pair once, as `rolling_correlation(..., packed=True)` gives them.

    Returns:
        shift, over the pairs that are finite in both rows, and NaN where there is none or t < `lag`; and regime, which
        a NaN shift leaves as it is. Causal.

    Raises:
        ValueError, TypeError: `correlation` is not (..., T, N, N) of floating point, a setting is out of its range.

    Devices: CPU and CUDA; elsewhere the reference. `shift` is differentiable in both modes; `regime` is a count.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> r = torch.tensor([0.1, 0.1, 0.6, 0.6]).reshape(4, 1, 1).expand(4, 2, 2)
        >>> ops.correlation_regime(r, threshold=0.3, lag=1)
        CorrelationRegime(shift=tensor([   nan, 0.0000, 0.5000, 0.0000]), regime=tensor([0, 0, 1, 1]))
    """
    check_panel("correlation_regime", correlation=correlation)
    check_integer("correlation_regime", 1, lag=lag)
    if packed:
        correlation = correlation.unsqueeze(-2)  # one row, without diagonal
    elif correlation.dim() < 3 or correlation.shape[-1] != correlation.shape[-2]:
        raise_invalid("correlation_regime", "correlation must be (..., T, N, N)", correlation=correlation)
    if not (math.isfinite(threshold) and threshold >= 0):
        raise_invalid("correlation_regime", "threshold must be finite and >= 0", threshold=threshold)
    return CorrelationRegime(*operator(correlation, float(threshold), lag, packed))


def _reference(correlation: Tensor, threshold: float, lag: int, packed: bool = False) -> tuple[Tensor, Tensor]:
    change, counted = _change(correlation, lag, packed)
    pairs = counted.sum((-2, -1))
    shift = (change.abs().sum((-2, -1)) / pairs).masked_fill(pairs == 0, torch.nan)
    number = torch.zeros(shift.shape[:-1], dtype=torch.int64, device=shift.device)
    since, numbers = torch.full_like(number, lag), []
    for t in range(shift.shape[-1]):
        rises = (shift[..., t] > threshold) & (since >= lag)
        number, since = number + rises, torch.where(rises, 1, since + 1)
        numbers.append(number)
    return shift, torch.stack(numbers, -1) if numbers else shift.to(torch.int64)


def _fake(correlation: Tensor, threshold: float, lag: int, packed: bool = False) -> tuple[Tensor, Tensor]:
    shape = correlation.shape[:-2]
    return correlation.new_empty(shape), correlation.new_empty(shape, dtype=torch.int64)


def _change(correlation: Tensor, lag: int, packed: bool) -> tuple[Tensor, Tensor]:
    """r(t) - r(t - lag), zero where it does not count, and where it counts: off the diagonal, finite in both rows."""
    before = pad(correlation, (0, 0, 0, 0, lag, 0), value=torch.nan)[..., : correlation.shape[-3], :, :]
    counted = (correlation - before).isfinite()
    if not packed:
        counted = counted & ~torch.eye(correlation.shape[-1], dtype=torch.bool, device=correlation.device)
    return (correlation.where(counted, 0) - before.where(counted, 0)), counted


def _backward(grad: Tensor, _: Tensor | None, *, correlation: Tensor, lag: int, packed: bool) -> Tensor:
    # d shift_t / d r(t) = sign(r(t) - r(t - lag)) / pairs, and its negative at r(t - lag)
    change, counted = _change(correlation, lag, packed)
    each = change.sign() * (grad / counted.sum((-2, -1)).clamp(min=1))[..., None, None]
    return each - pad(each, (0, 0, 0, 0, 0, lag))[..., lag:, :, :]


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    r = torch.rand(2, 9, 3, 3, dtype=torch.double, generator=generator) * 2 - 1
    holed = r.clone()
    holed[0, 3, 1] = holed[1, 4:6] = torch.nan
    steps = torch.tensor([0.1, 0.1, 0.6, 0.0, 0.6], dtype=torch.double).reshape(5, 1, 1).expand(5, 2, 2)
    shift = torch.tensor([torch.nan, 0, 0.5, 0.6, 0.6], dtype=torch.double)
    regime = torch.tensor([0, 0, 1, 2, 3])
    return Cases(
        function=correlation_regime,
        samples=(
            Sample(r, threshold=0.6, lag=2),
            Sample(holed, lag=3),
            Sample(r[:1, :, :2, :2], lag=1),
        ),
        bad=(
            Bad(Sample(r[..., :2], lag=2), r"correlation must be \(\.\.\., T, N, N\); got correlation \(2, 9, 3, 2\)"),
            Bad(Sample(r[0, 0], lag=2), r"correlation must be \(\.\.\., T, N, N\)"),
            Bad(Sample(r, lag=0), "lag must be >= 1; got lag=0"),
            Bad(Sample(r, threshold=-0.1), "threshold must be finite and >= 0; got threshold=-0.1"),
            Bad(Sample(r.long(), lag=2), "correlation must be floating-point", TypeError),
        ),
        golden=(Golden(Sample(steps, lag=1), (shift, regime), "by hand"),),
    )


operator = Op(
    "correlation_regime",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    cases=_cases,
    warmup=lambda threshold, lag, packed: (lag, 0),
    time=(-3, -1),
)
