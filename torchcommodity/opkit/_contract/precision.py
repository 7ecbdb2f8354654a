"""Numerical precision: half precision, autocast, a large level, a long series."""

import torch
from torch import Tensor

from torchcommodity.opkit._contract.case import Case, SkipCheck
from torchcommodity.opkit._contract.checks import register
from torchcommodity.opkit._contract.compare import assert_close, first_index
from torchcommodity.opkit._contract.resize import repeat_to
from torchcommodity.opkit._contract.values import VALUES, to_double, to_float

RELATIVE_ERROR = 1e-4  # four correct digits
LARGE = 1e30  # results beyond this are close to the range of float32


@register(
    "Half precision must be computed in float32 and returned in the dtype of the input: pass the tensors to the record "
    "unchanged.",
    depends_on=(*VALUES, "values_float32"),
)
def half_precision(case: Case) -> None:
    """float16 and bfloat16 in and out, float32 inside."""
    for dtype in (torch.float16, torch.bfloat16):
        half = case.map_tensors(lambda x, dtype=dtype: x.to(dtype) if x.is_floating_point() else x)  # type: ignore[misc]
        outputs = half.map_tensors(to_float).call()
        expected = [y.to(dtype) if y.is_floating_point() else y for y in outputs]
        assert_close(half.call(), expected, 0.02, f"result in {dtype}")


@register(
    "Under autocast the public function computes in bfloat16 (a matmul, a convolution). Compute in the operator only.",
    depends_on=(*VALUES, "values_float32"),
)
def autocast(case: Case) -> None:
    """Under autocast the result is that of float32."""
    single = case.map_tensors(to_float)
    expected = single.call()
    with torch.autocast("cpu", torch.bfloat16):
        assert_close(single.call(), expected, 1e-5, "result under autocast")


def _assert_four_digits(case: Case, label: str) -> bool:
    """Compare with the reference in float64 on the same input; return False if no result is within range."""
    double = case.map_tensors(to_double)
    pairs = [(x, y) for x, y in zip(case.call(), double.call_reference()) if x.is_floating_point()]
    masks = [y.isfinite() & (y.abs() < LARGE) for _, y in pairs]
    for i, ((x, y), valid) in enumerate(zip(pairs, masks)):
        scale = y.where(valid, torch.nan).abs().nanmedian(case.time[1], keepdim=True).values.nan_to_num(0.0)
        wrong = valid & ~((x.double() - y).abs() <= RELATIVE_ERROR * (y.abs() + scale))
        at = first_index(wrong)
        assert at is None, (
            f"{label}: output {i} at {at}: expected {y[at].item():.6g}; got {x[at].item():.6g}; "
            f"{int(wrong.sum())} of {x.numel()} elements lack four correct digits"
        )
    return any(bool(valid.any()) for valid in masks)


def _large_level_like(x: Tensor, noise: float) -> Tensor:
    return 1e6 + noise * torch.randn(x.shape, dtype=torch.double, generator=torch.Generator().manual_seed(0))


@register(
    "Digits cancel at a large level. Subtract a row of the window before you square or sum, or accumulate in double; "
    "never E[x^2] - E[x]^2.",
    depends_on=(*VALUES, "values_float32"),
    needs_time=True,
)
def large_level(case: Case) -> None:
    """At a level of 1e6 four digits are correct: with noise of 1e-2 in float64, of 1 in float32."""
    within_range = False
    for i in case.panel_indices:
        if not case.tensors[i].is_floating_point():
            continue
        for dtype, noise in ((torch.double, 1e-2), (torch.float, 1.0)):
            tensors = [_large_level_like(x, noise) if j == i else x for j, x in enumerate(case.tensors)]
            large = case.with_tensors(
                [x.to(dtype) if isinstance(x, Tensor) and x.is_floating_point() else x for x in tensors]
            )
            within_range |= _assert_four_digits(large, f"{dtype}, tensor {i} at 1e6 with noise of {noise:g}")
    if not within_range:
        raise SkipCheck("no result within range at this level")


@register(
    "Rounding errors accumulate over a long series. Restart running sums at intervals, or accumulate in double.",
    depends_on=("large_level",),
    first_sample_only=True,
    needs_time=True,
)
def long_series(case: Case) -> None:
    """Over 3000 rows four digits are correct in float32."""
    time = case.time[0]
    longer = case.map_panels(lambda x: repeat_to(x, time, 3000)).map_tensors(to_float)
    if not _assert_four_digits(longer, "over 3000 rows"):
        raise SkipCheck("no result within range")
