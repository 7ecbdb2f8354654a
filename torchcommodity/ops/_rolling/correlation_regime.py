"""Regimes of a correlation structure: how far it has shifted, and a running regime number."""

import math
from numbers import Real
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from torch_opkit import Bad, Cases, Golden, Op, Past, Sample, live
from torch_opkit.arguments import check_integer, check_panel, raise_invalid
from torchcommodity.ops._rolling.window import last_rows
from torchcommodity.ops._scan.scan import Tensors, scan


class CorrelationRegime(NamedTuple):
    """Result of `correlation_regime`."""

    shift: Tensor  # (..., T)
    regime: Tensor  # (..., T) int64


def _update(past: Past, correlation: Tensor, threshold: float, lag: int, packed: bool) -> CorrelationRegime:
    axis, before = -2 if packed else -3, past.get("correlation")
    rows = correlation if before is None else torch.cat([before, correlation], axis)
    past.keep("correlation", last_rows(rows, min(lag, rows.shape[axis]), axis).clone())
    wide = rows.to(torch.promote_types(rows.dtype, torch.float32))
    shift = correlation_regime(wide, threshold, lag, packed=packed).shift
    shift = last_rows(shift, correlation.shape[axis], -1)
    number, age = past.get("number"), past.get("age")
    if number is None or age is None:
        number = torch.zeros(shift.shape[:-1], dtype=torch.int64, device=shift.device)
        age = torch.full_like(number, lag)
    regime, number, age = _number_regimes(shift, threshold, lag, number, age)
    past.keep("number", number)
    past.keep("age", age)
    return CorrelationRegime(shift.to(correlation.dtype), regime)


@live(_update, time=lambda packed, **_: -2 if packed else -3, outputs=-1)
def correlation_regime(
    correlation: Tensor,  # (..., T, N, N), or (..., T, P) if packed
    threshold: float = 0.3,
    lag: int = 21,
    *,
    packed: bool = False,
) -> CorrelationRegime:
    """Shift of a correlation structure against `lag` rows ago, and the number of the current regime.

    shift_t is the mean over i != j of |r_ij(t) - r_ij(t - lag)|. The regime number starts at 0 and rises by one when
    shift_t > `threshold`, at most once in `lag` rows.

    Args:
        correlation: Correlations as `rolling_correlation` returns them.
        threshold: Shift that starts a new regime, >= 0.
        lag: Rows between the two structures, >= 1. 21 rows are one month of trading days.
        packed: The last axis holds each pair once, as from `rolling_correlation(..., packed=True)`.

    Returns:
        shift: Mean over the pairs that are valid in both rows; NaN where there is no such pair or t < `lag`.
        regime: Regime number, unchanged where shift is NaN. Causal.

    Raises:
        ValueError, TypeError: If `correlation` is not a floating-point Tensor (..., T, N, N) or an argument is out of
            range.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. `shift` is differentiable in reverse and forward
    mode; `regime` has no gradient.

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
        correlation = correlation.unsqueeze(-2)  # a matrix of one row, all of which counts
    elif correlation.dim() < 3 or correlation.shape[-1] != correlation.shape[-2]:
        raise_invalid("correlation_regime", "correlation must be (..., T, N, N)", correlation=correlation)
    if not isinstance(threshold, (int, float, Real, Tensor)):
        raise_invalid("correlation_regime", "threshold must be a number", TypeError, threshold=threshold)
    if not 0 <= threshold < math.inf:  # isfinite would break the graph of torch.compile at a threshold that changes
        raise_invalid("correlation_regime", "threshold must be finite and >= 0", threshold=threshold)
    return CorrelationRegime(*operator(correlation, float(threshold), lag, packed))


def _reference(
    correlation: Tensor, threshold: float = 0.3, lag: int = 21, packed: bool = False
) -> tuple[Tensor, Tensor]:
    shift = _shift(correlation, lag, packed)
    number = torch.zeros(shift.shape[:-1], dtype=torch.int64, device=shift.device)
    return shift, _number_regimes(shift, threshold, lag, number, torch.full_like(number, lag))[0]


def _shift(correlation: Tensor, lag: int, packed: bool) -> Tensor:
    change, valid = _change(correlation, lag, packed)
    pairs = valid.sum((-2, -1))
    return (change.abs().sum((-2, -1)) / pairs).masked_fill(pairs == 0, torch.nan)


def _number_regimes(
    shift: Tensor, threshold: float, lag: int, number: Tensor, age: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Regime numbers; the last one and its age in rows."""
    numbers = []
    for t in range(shift.shape[-1]):
        starts = (shift[..., t] > threshold) & (age >= lag)
        number, age = number + starts, torch.where(starts, 1, age + 1)
        numbers.append(number)
    return (torch.stack(numbers, -1) if numbers else shift.to(torch.int64)), number, age


def _decomposition(correlation: Tensor, threshold: float, lag: int, packed: bool = False) -> tuple[Tensor, Tensor]:
    def step(state: Tensors, row: Tensors) -> tuple[Tensors, Tensors]:
        number, age = state
        starts = (row[0] > threshold) & (age >= lag)
        number = number + starts
        return (number, torch.where(starts, 1, age + 1)), (number.clone(),)

    shift = _shift(correlation, lag, packed)
    number = torch.zeros_like(shift[..., 0], dtype=torch.int64)
    first = number, torch.full_like(number, lag)
    (numbers,) = scan(step, first, (shift.movedim(-1, 0),))
    return shift, numbers.movedim(0, -1).contiguous()


def _fake(correlation: Tensor) -> tuple[Tensor, Tensor]:
    shape = correlation.shape[:-2]
    return correlation.new_empty(shape), correlation.new_empty(shape, dtype=torch.int64)


def _change(correlation: Tensor, lag: int, packed: bool) -> tuple[Tensor, Tensor]:
    """r(t) - r(t - lag), zero where not valid; valid where off the diagonal and finite in both rows."""
    previous = pad(correlation, (0, 0, 0, 0, lag, 0), value=torch.nan)[..., : correlation.shape[-3], :, :]
    valid = (correlation - previous).isfinite()
    if not packed:
        valid = valid & ~torch.eye(correlation.shape[-1], dtype=torch.bool, device=correlation.device)
    return (correlation.where(valid, 0) - previous.where(valid, 0)), valid


def _backward(grad: Tensor, _: Tensor | None, *, correlation: Tensor, lag: int, packed: bool) -> Tensor:
    # d shift_t / d r(t) = sign(r(t) - r(t - lag)) / pairs, and its negative at r(t - lag)
    change, valid = _change(correlation, lag, packed)
    d_change = change.sign() * (grad / valid.sum((-2, -1)).clamp(min=1))[..., None, None]
    return d_change - pad(d_change, (0, 0, 0, 0, 0, lag))[..., lag:, :, :]


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    r = torch.rand(2, 9, 3, 3, dtype=torch.double, generator=generator) * 2 - 1
    r_nan = r.clone()
    r_nan[0, 3, 1] = r_nan[1, 4:6] = torch.nan
    steps = torch.tensor([0.1, 0.1, 0.6, 0.0, 0.6], dtype=torch.double).reshape(5, 1, 1).expand(5, 2, 2)
    shift = torch.tensor([torch.nan, 0, 0.5, 0.6, 0.6], dtype=torch.double)
    regime = torch.tensor([0, 0, 1, 2, 3])
    return Cases(
        function=correlation_regime,
        samples=(
            Sample(r, threshold=0.6, lag=2),
            Sample(r_nan, lag=3),
            Sample(r[:1, :, :2, :2], lag=1),
        ),
        bad=(
            Bad(Sample(r[..., :2], lag=2), r"correlation must be \(\.\.\., T, N, N\); got correlation \(2, 9, 3, 2\)"),
            Bad(Sample(r[0, 0], lag=2), r"correlation must be \(\.\.\., T, N, N\)"),
            Bad(Sample(r, lag=0), "lag must be >= 1; got lag=0"),
            Bad(Sample(r, threshold="0.3"), "threshold must be a number; got threshold='0.3'", TypeError),
            Bad(Sample(r, threshold=-0.1), "threshold must be finite and >= 0; got threshold=-0.1"),
            Bad(Sample(r.long(), lag=2), "correlation must be floating-point", TypeError),
        ),
        golden=(Golden(Sample(steps, lag=1), (shift, regime), "by hand"),),
    )


operator = Op(
    "commodity::correlation_regime",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    decomposition=_decomposition,
    cases=_cases,
    warmup=lambda lag: (lag, 0),
    time=(-3, -1),
)
