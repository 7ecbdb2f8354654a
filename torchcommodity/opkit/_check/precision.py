"""Few digits, many rows: half precision, autocast, a large level, a long series."""

import torch
from torch import Tensor

from torchcommodity.opkit._check.compare import same
from torchcommodity.opkit._check.resize import repeated
from torchcommodity.opkit._check.rows import row
from torchcommodity.opkit._check.subject import Skip, Subject
from torchcommodity.opkit._check.values import VALUES, narrowed, widened

DIGITS = 1e-4  # four right digits
LARGE = 1e30  # beyond it float32 itself gives out


@row(
    "Half precision must come back as it came, computed in float32: hand the tensors to the record as they are.",
    after=(*VALUES, "values_float32"),
)
def half(subject: Subject) -> None:
    """float16 and bfloat16 in and out, float32 inside."""
    for dtype in (torch.float16, torch.bfloat16):
        low = subject.mapped(lambda x, dtype=dtype: x.to(dtype) if x.is_floating_point() else x)  # type: ignore[misc]
        wide = low.mapped(narrowed).call()
        expected = [y.to(dtype) if y.is_floating_point() else y for y in wide]
        same(low.call(), expected, 0.02, f"the result in {dtype}")


@row(
    "Under autocast the door computes in bfloat16 (a matmul, a convolution). Leave the numbers to the operator.",
    after=(*VALUES, "values_float32"),
)
def autocast(subject: Subject) -> None:
    """Under autocast the result stays that of float32."""
    single = subject.mapped(narrowed)
    expected = single.call()
    with torch.autocast("cpu", torch.bfloat16):
        same(single.call(), expected, 1e-5, "the result under autocast")


def _judge_digits(subject: Subject, what: str) -> bool:
    """Four right digits against the reference in float64, on the same input; False if nothing is within range."""
    wide = subject.mapped(widened)
    pairs = [(x, y) for x, y in zip(subject.call(), wide.defined()) if x.is_floating_point()]
    judged = [(x, y, y.isfinite() & (y.abs() < LARGE)) for x, y in pairs]
    for i, (x, y, known) in enumerate(judged):
        size = y.where(known, torch.nan).abs().nanmedian(subject.time[1], keepdim=True).values.nan_to_num(0.0)
        wrong = known & ~((x.double() - y).abs() <= DIGITS * (y.abs() + size))
        at = wrong.nonzero()
        assert not len(at), (
            f"{what}: output {i} is {x[tuple(at[0])].item():.6g} at {tuple(at[0].tolist())}, not "
            f"{y[tuple(at[0])].item():.6g}; {len(at)} of {x.numel()} elements lack four right digits"
        )
    return any(bool(known.any()) for _, _, known in judged)


def _at_level(x: Tensor, noise: float) -> Tensor:
    shape = x.shape
    return 1e6 + noise * torch.randn(shape, dtype=torch.double, generator=torch.Generator().manual_seed(0))


@row(
    "Digits cancel at a large level. Subtract a row of the window before you square or sum, or accumulate in double; "
    "never E[x^2] - E[x]^2.",
    after=(*VALUES, "values_float32"),
    timed=True,
)
def level(subject: Subject) -> None:
    """At a level of 1e6 four digits stay right: noise of 1e-2 in float64, of 1 in float32."""
    known = False
    for i in subject.panels:
        if not subject.tensors[i].is_floating_point():
            continue
        for dtype, noise in ((torch.double, 1e-2), (torch.float, 1.0)):
            tensors = [_at_level(x, noise) if j == i else x for j, x in enumerate(subject.tensors)]
            at_level = subject.given(
                [x.to(dtype) if isinstance(x, Tensor) and x.is_floating_point() else x for x in tensors]
            )
            known |= _judge_digits(at_level, f"{dtype}, tensor {i} at 1e6 with noise of {noise:g}")
    if not known:
        raise Skip("no result within range at this level")


@row(
    "Errors pile up over a long series. Anchor running sums anew now and then, or accumulate in double.",
    after=("level",),
    once=True,
    timed=True,
)
def long(subject: Subject) -> None:
    """Over 3000 rows four digits stay right, in float32."""
    time = subject.time[0]
    longer = subject.with_panels(lambda x: repeated(x, time, 3000)).mapped(narrowed)
    if not _judge_digits(longer, "over 3000 rows"):
        raise Skip("no result within range")
