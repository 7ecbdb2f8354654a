"""Numerical precision: half precision, autocast, a large level, a long series."""

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import product

import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode

from torch_opkit._contract.case import Case, Fault, SkipCheck, Tensors, float_tensors
from torch_opkit._contract.checks import describe_error, register
from torch_opkit._contract.compare import assert_close, first_index
from torch_opkit._contract.resize import affordable_rows, repeat_to
from torch_opkit._contract.source import locate_error
from torch_opkit._contract.values import VALUES, to_double, to_float
from torch_opkit._op import Op, is_floating

PRICE_LEVEL = 300.0  # its square exceeds 65504, the largest number of float16
RETURNS = 0.1  # numbers as small as this are returns or weights, which have no price level
RELATIVE_ERROR = 1e-4  # four correct digits
LARGE = 1e30  # results beyond this are close to the range of float32


def _assert_four_digits(case: Case, label: str) -> bool:
    """Compare with the reference in float64 on the same input; return False if no result is within range.

    Without a reference, compare with the operator itself in float64.
    """
    double = case.map_tensors(to_double)
    expected = double.call_reference() if _has_definition(case) else double.call()
    outputs = case.call()
    pairs = [(x, y) for x, y in zip(outputs, expected) if x.is_floating_point()]
    slack: Tensors = (torch.zeros(()),) * len(outputs)
    if not isinstance(case.op, Op):  # what rounding of the input allows; a record must not need it
        dtype = next((x.dtype for x in case.tensors if is_floating(x)), torch.double)
        noise = _rounding_noise(double, torch.finfo(dtype).eps)
        slack = tuple(4 * n for n, y in zip(noise, outputs) if y.is_floating_point()) or slack
    masks = [y.isfinite() & (y.abs() < LARGE) for _, y in pairs]
    for i, ((x, y), valid, allowed) in enumerate(zip(pairs, masks, slack)):
        scale = y.where(valid, torch.nan).abs().nanmedian(case.time[1], keepdim=True).values.nan_to_num(0.0)
        wrong = valid & ~((x.double() - y).abs() <= RELATIVE_ERROR * (y.abs() + scale) + allowed)
        at = first_index(wrong)
        assert at is None, (
            f"{label}: output {i} at {at}: expected {y[at].item():.6g}; got {x[at].item():.6g}; "
            f"{int(wrong.sum())} of {x.numel()} elements lack four correct digits"
        )
    return any(bool(valid.any()) for valid in masks)


def _rounding_noise(case: Case, relative: float) -> Tensors:
    """For each output, how far it moves if every input element moves by `relative`, at random up or down, twice.

    A result that is sensitive to its input, as a difference of prices or a chaotic map, has no more correct digits
    than its rounded input allows, however well it is computed.
    """
    with torch.no_grad():
        base = case.call()
        moved = [_call_moved(case, relative, seed) for seed in (0, 1)]
    noise = list[Tensor]()
    for i, y in enumerate(base):
        changes = torch.zeros(y.shape, dtype=torch.double)
        if y.is_floating_point():
            changes = torch.stack([(outputs[i] - y).abs().double().nan_to_num(0.0) for outputs in moved]).amax(0)
            if changes.numel():  # at least half of the largest: neighbours share their intermediate results
                changes = changes.clamp(min=changes.max().item() / 2)
        noise.append(changes)
    return tuple(noise)


def _call_moved(case: Case, relative: float, seed: int) -> Tensors:
    generator = torch.Generator().manual_seed(seed)

    def move(x: Tensor) -> Tensor:
        if not x.is_floating_point():
            return x
        signs = torch.randint(2, x.shape, generator=generator).to(x) * 2 - 1
        return x * (1 + relative * signs)

    return case.map_tensors(move).call()


def _has_definition(case: Case) -> bool:
    return isinstance(case.op, Op) or bool(case.op.reference)


def at_level(x: Tensor, level: float, noise: float) -> Tensor:
    deviations = torch.randn(x.shape, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    return level + noise * deviations.to(x.device)


@register(
    "Digits cancel at a large level. Subtract a row of the window before you square or sum, or accumulate in double; "
    "never E[x^2] - E[x]^2.",
    depends_on=(*VALUES, "values_float32"),
    needs_time=True,
)
def large_level(case: Case) -> None:
    """At a level of 1e6 four digits are correct: with noise of 1e-2 in float64, of 1 in float32.

    A foreign operator is also called at 300 and 2e4, where more operators stay within range.
    """
    levels = (1e6,) if isinstance(case.op, Op) else (300.0, 2e4, 1e6)
    # without a definition, float32 is compared with the operator itself in float64
    precisions = ((torch.double, 1e-2), (torch.float, 1.0)) if _has_definition(case) else ((torch.float, 1.0),)
    within_range = False
    for i, (dtype, noise), level in product(case.panel_indices, precisions, levels):
        if case.tensors[i].is_floating_point():
            tensors = [at_level(x, level, noise) if j == i else x for j, x in enumerate(case.tensors)]
            floating = [is_floating(x) for x in tensors]
            large = case.with_tensors([x.to(dtype) if f else x for x, f in zip(tensors, floating)])
            label = f"{dtype}, tensor {i} at {level:g} with noise of {noise:g}"
            within_range |= _assert_four_digits(large, label)
    if not within_range:
        raise SkipCheck("no result within range at this level")


@register(
    "Rounding errors accumulate over a long series. Restart running sums at intervals, or accumulate in double.",
    depends_on=("large_level",),
    first_sample_only=True,
    needs_time=True,
)
def long_series(case: Case) -> None:
    """Over 3000 rows four digits are correct in float32; over 20000 of a foreign operator that is fast enough."""
    if not _has_definition(case):
        raise SkipCheck("there is no definition to compare with: pass reference=function")
    time = case.time[0]
    rows = 3000 if isinstance(case.op, Op) else affordable_rows(case, 20_000)
    longer = case.map_panels(lambda x: repeat_to(x, time, rows)).map_tensors(to_float)
    if not _assert_four_digits(longer, f"over {rows} rows"):
        raise SkipCheck("no result within range")


@register(
    "Half precision must be computed in float32 and returned in the dtype of the input: pass the tensors to the record "
    "unchanged.",
    depends_on=(*VALUES, "values_float32"),
)
def half_precision(case: Case) -> None:
    """float16 and bfloat16 in and out, float32 inside; a foreign operator only keeps within range and rounding."""
    at_prices = [] if isinstance(case.op, Op) or not case.op.time else [case.map_panels(_at_price_level)]
    for panel, dtype in product([case, *at_prices], (torch.float16, torch.bfloat16)):
        half = panel.map_tensors(lambda x, dtype=dtype: x.to(dtype) if x.is_floating_point() else x)  # type: ignore[misc]
        single = half.map_tensors(to_float)
        expected = [y.to(dtype) if y.is_floating_point() else y for y in single.call()]
        if isinstance(case.op, Op):
            assert_close(half.call(), expected, 0.02, f"result in {dtype}")
        else:
            actual = call_supported(half)
            for i, (x, y) in enumerate(zip(actual, expected)):
                assert x.dtype == y.dtype, f"output {i}: {dtype} in, {x.dtype} out, where float32 gives float32"
            _assert_within_rounding(single, actual, expected, dtype)
    is_first = case.sample is case.cases.samples[0]
    if is_first and not isinstance(case.op, Op) and case.rows and "time" not in case.op.guesses:
        _assert_long_half(case)


def _assert_long_half(case: Case) -> None:
    """A sum that is kept in bfloat16 stands still at some hundreds of times its terms."""
    rows, start = 1200, time.perf_counter()
    call_supported(case)
    if (time.perf_counter() - start) * rows / case.rows > 0.1:  # seconds, of a loop over rows
        return
    longer = case.map_panels(lambda x: repeat_to(x, case.time[0], rows))
    half = longer.map_tensors(lambda x: x.to(torch.bfloat16) if x.is_floating_point() else x)
    axis, expected = case.time[1], half.map_tensors(to_float).call()
    for i, (x, y) in enumerate(zip(call_supported(half), expected)):
        if y.is_floating_point():
            early, middle, last = (y.double().select(axis, row) for row in (rows // 6, rows * 2 // 3, -1))
            grows = (middle.abs() > 2 * early.abs()) & (last.abs() > 4 * early.abs())  # as a sum of positive terms
            actual = x.double().select(axis, -1) - x.double().select(axis, rows * 2 // 3)
            stands = grows & ((last - middle).abs() > 0.25 * last.abs()) & (actual.abs() < 0.3 * (last - middle).abs())
            message = f"output {i} in bfloat16 stands still in the last third of {rows} rows, where it moves in float32"
            assert not stands.any(), message


def _at_price_level(x: Tensor) -> Tensor:
    if not x.is_floating_point() or x.abs().nanmean() < RETURNS or (x < 0).any():
        return x
    return x * PRICE_LEVEL / x.nanmean().abs().clamp(min=1.0)


def call_supported(half: Case) -> Tensors:
    """The outputs; skip the check if the operator refuses the dtype."""
    try:
        return half.call()
    except (RuntimeError, TypeError, ValueError) as error:
        raise SkipCheck(f"refused: {' '.join(str(error).split())[:120]}") from error
    except Exception as error:
        raise Fault("crash", describe_error(error), location=locate_error(error)) from error


def _assert_within_rounding(single: Case, actual: Tensors, expected: Sequence[Tensor], dtype: torch.dtype) -> None:
    """Finite where the result in float32 fits the range; and no farther off than rounding of the input explains."""
    for i, (x, y, noise) in enumerate(zip(actual, expected, _rounding_noise(single, torch.finfo(dtype).eps))):
        if not y.is_floating_point():
            continue
        overflow = first_index(y.isfinite() & ~x.isfinite())
        if overflow is not None:
            message = (
                f"output {i} in {dtype} at {overflow}: expected {y[overflow].item():.6g}; got {x[overflow].item()}"
            )
            raise Fault("half_overflow", message)
        scale = y[y.isfinite()].abs().double().median() if y.isfinite().any() else torch.zeros(())
        error = (x.double() - y.double()).abs().nan_to_num(0.0)
        at = first_index(error > 0.03 * (y.double().abs() + scale) + 8 * noise)
        assert at is None, f"output {i} in {dtype} at {at}: expected {y[at].item():.6g}; got {x[at].item():.6g}"


@register(
    "Under autocast the public function computes in bfloat16 (a matmul, a convolution). Compute in the operator only.",
    depends_on=(*VALUES, "values_float32"),
)
def autocast(case: Case) -> None:
    """Under autocast the result is that of float32; of a foreign operator, up to the rounding of bfloat16."""
    single = case.map_tensors(to_float)
    expected = single.call()
    if isinstance(case.op, Op):
        with AUTOCAST():
            actual = single.call()
        assert_close(actual, expected, 1e-5, "result under autocast")
        return
    with _refuse_mixed_dtypes("forward"), AUTOCAST():
        actual = call_supported(single)
    _assert_dtypes_of_fake(single, actual)
    # autocast means matrix products and convolutions to be in bfloat16
    _assert_within_rounding(single, actual, expected, torch.bfloat16)
    if case.op.backward:
        leaves = single.leaves()
        with AUTOCAST():
            outputs = [y for y in float_tensors(single.outputs(*leaves)) if y.requires_grad]
        # outside of autocast, as in training; other errors are the finding of the checks of gradients
        with suppress(RuntimeError), _refuse_mixed_dtypes("backward"):
            torch.autograd.grad(outputs, leaves, [torch.ones_like(y) for y in outputs], allow_unused=True)


AUTOCAST = partial(torch.autocast, "cpu", torch.bfloat16)
MIXED_DTYPES = re.compile("same dtype|same type|expected scalar type|BFloat16 and Float|Float and BFloat16")


@contextmanager
def _refuse_mixed_dtypes(part: str) -> Iterator[None]:
    """A product inside that autocast makes bfloat16 does not fit the rest, which is float32."""
    try:
        yield
    except (RuntimeError, SkipCheck) as error:
        cause = error.__cause__ if isinstance(error, SkipCheck) and error.__cause__ else error
        if not MIXED_DTYPES.search(str(cause)):
            raise
        message = f"under autocast, {part} meets float32 and bfloat16: {describe_error(cause)}"  # type: ignore[arg-type]
        raise Fault("autocast", message, location=locate_error(cause)) from error


def _assert_dtypes_of_fake(single: Case, actual: Tensors) -> None:
    """A registered operator has the dtypes that its fake kernel promises to compilers."""
    if isinstance(single.op, Op) or single.op.plain or single.op.make.composite:
        return
    try:
        with FakeTensorMode(allow_non_fake_inputs=True) as mode, AUTOCAST():
            promised = single.map_tensors(lambda x: mode.from_tensor(x)).call()
    except Exception:  # the finding of `fake`
        return
    for i, (x, y) in enumerate(zip(actual, promised)):
        if x.dtype != y.dtype:
            message = f"under autocast, output {i} is {x.dtype}: a product inside runs in it; the fake says {y.dtype}"
            raise Fault("autocast", message)
