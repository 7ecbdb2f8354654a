"""The native engine against the reference: random programs, holes, splits, threads, gradients, bad programs."""

import random

import pytest
import torch
from torch import Tensor

from torchcommodity.ops._series.interpret import interpret
from torchcommodity.ops._series.program import MAX_INPUTS
from torchcommodity.ops._series.series_program_backward import PROGRAMS, sample_inputs

pytestmark = pytest.mark.skipif(
    not hasattr(torch.ops.commodity, "series_step"), reason="the native library is not built"
)
UNARY = ("negate", "absolute", "sqrt", "exp", "log", "atan", "sin", "cos", "valid", "forward_fill", "count", "cumsum")
UNARY += ("change", "previous")
BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "less", "fill", "restrict", "skip")
WINDOWS = ("lag", "window_sum", "window_mean", "weighted_sum", "highest", "lowest", "absolute_deviation", "rank")
LOOP = "feedback 0.5; subtract %{x} %{f}; multiply %{f1} %3; add %{f} %{f2}; lag %{f3} 1; assign %{f} %{f3}"


def run(inputs: list[Tensor], program: str) -> Tensor:
    y: Tensor = torch.ops.commodity.series_program(*inputs, *[None] * (MAX_INPUTS - len(inputs)), program)
    return y


def step(inputs: list[Tensor], state: Tensor | None, program: str) -> tuple[Tensor, Tensor]:
    y, after = torch.ops.commodity.series_step(*inputs, *[None] * (MAX_INPUTS - len(inputs)), state, program)
    return y, after


def random_program(seed: int) -> str:
    """Twelve statements on two panels, one of them a loop, each applied to recent values."""
    choose = random.Random(seed)
    lines = ["panels 2", "input 0", "input 1", "constant 0.3", "constant 3.0", "constant 0.25"]
    values = [1, 2]
    for k in range(12):
        x, y, n = choose.choice(values[-5:]), choose.choice(values[-5:]), len(lines)
        kind = choose.random()
        if k == 6:
            lines += LOOP.format(x=x, f=n, f1=n + 1, f2=n + 2, f3=n + 3).split("; ")
            values += [n + 3, n + 4]
            continue
        if kind < 0.3:
            lines.append(f"{choose.choice(UNARY)} %{x}")
        elif kind < 0.5:
            lines.append(f"{choose.choice(BINARY)} %{x} %{y}")
        elif kind < 0.8:
            lines.append(f"{choose.choice(WINDOWS)} %{x} {choose.choice((1, 2, 5, 9))}")
        else:
            others = f"window_products %{x} %{y} 4", f"exponential %{x} %3 %4 %4 %5", f"recurrence %3 %{x} %{y}"
            others = *others, f"smooth %{x} %3 %{y}"
            lines.append(choose.choice((*others, f"where %{x} %{y} %1", f"true_range %{x} %1 %{y}")))
        values.append(n)
    return "; ".join([*lines, f"return float %{values[-1]} %{values[-2]}"])


def random_panels(shape: tuple[int, ...], seed: int) -> list[Tensor]:
    """Two panels; those of odd seeds have holes."""
    generator = torch.Generator().manual_seed(seed)
    panels = 2 + torch.rand(2, *shape, dtype=torch.double, generator=generator)
    if seed % 2:
        panels[torch.rand(panels.shape, generator=generator) < 0.05] = torch.nan
    return [*panels]


def assert_same_bits(x: Tensor, y: Tensor) -> None:
    torch.testing.assert_close(x, y, rtol=0, atol=0, equal_nan=True)


SHAPES = ((40, 1), (30, 3), (2, 24, 9), (40, 70))
SEEDS = range(12)


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_statement_equals_the_reference(program: str) -> None:
    inputs = sample_inputs()[: program.count("input ")]
    torch.testing.assert_close(run(inputs, program), interpret(inputs, program), equal_nan=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs_equal_the_reference(seed: int) -> None:
    program, inputs = random_program(seed), random_panels(SHAPES[seed % 4], seed)
    torch.testing.assert_close(run(inputs, program), interpret(inputs, program), rtol=1e-9, atol=1e-9, equal_nan=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_any_split_of_the_rows_gives_the_same_bits(seed: int) -> None:
    program, inputs = random_program(seed), random_panels(SHAPES[seed % 4], seed)
    rows, state, outputs = inputs[0].shape[-2], None, []
    cuts = sorted(random.Random(seed).choices(range(rows + 1), k=4))
    for begin, end in zip([0, *cuts], [*cuts, rows]):
        before = None if state is None else state.clone()
        y, after = step([x[..., begin:end, :] for x in inputs], state, program)
        if state is not None and before is not None:
            assert_same_bits(state, before)
        outputs, state = [*outputs, y], after
    assert_same_bits(torch.cat(outputs, -2), run(inputs, program))


def test_bits_do_not_depend_on_columns_threads_and_dtype_of_the_result() -> None:
    program, inputs = random_program(4), random_panels((600, 130), 1)
    threads, y = torch.get_num_threads(), run(inputs, program)
    try:
        torch.set_num_threads(1 if threads > 1 else 2)
        assert_same_bits(run(inputs, program), y)
    finally:
        torch.set_num_threads(threads)
    assert_same_bits(run([x[:, 3:4] for x in inputs], program), y[..., 3:4])
    single = [x.float() for x in inputs]
    assert_same_bits(run(single, program), run([x.double() for x in single], program).float())


@pytest.mark.parametrize("seed", SEEDS)
def test_gradients_equal_those_of_the_reference(seed: int) -> None:
    """A missing output ignores its gradient, even if that is NaN."""
    program, inputs = random_program(seed), random_panels(((40, 3), (2, 24, 9))[seed % 2], seed)
    leaves = [x.clone().requires_grad_() for x in inputs]
    y = interpret(leaves, program)
    grad = torch.randn(y.shape, dtype=torch.double, generator=torch.Generator().manual_seed(seed))
    expected = torch.zeros(2, *inputs[0].shape, dtype=torch.double)
    if y.requires_grad:
        known = y.isnan().logical_not()
        gradients = torch.autograd.grad(y.where(known, 0), leaves, grad.where(known, 0), allow_unused=True)
        expected = torch.stack([torch.zeros_like(x) if g is None else g for x, g in zip(inputs, gradients)])
    actual = torch.ops.commodity.series_program_backward(
        grad.where(~y.isnan(), torch.nan), *inputs, *[None] * 6, program, [0, 1]
    )
    torch.testing.assert_close(actual, expected.movedim(0, -3), rtol=1e-7, atol=1e-9)


WINDOW_PROGRAM = (
    "panels 1; input 0; highest %1 5; weighted_sum %1 4; window_products %1 %2 7; absolute_deviation %1 6; "
    "lag %1 40; subtract %3 %4; add %7 %5; multiply %8 %6; window_sum %9 30; cumsum %10; sqrt %11; return float %12"
)
RECURRENCE_PROGRAM = (
    "panels 1; input 0; constant 0.3; constant 3.0; constant 9.0; constant 0.25; exponential %1 %2 %3 %4 %5; lag %6 3; "
    "lag %1 1; smooth %7 %2 %8; previous %1; skip %9 %3; window_mean %10 7; weighted_sum %11 11; lag %13 8; lag %14 2; "
    "multiply %12 %15; subtract %16 %6; return float %17"
)


@pytest.mark.parametrize("program", [WINDOW_PROGRAM, RECURRENCE_PROGRAM], ids=["windows", "recurrences"])
@pytest.mark.parametrize("shape", [(700, 64), (9000, 1)])
def test_gradients_over_several_segments(shape: tuple[int, ...], program: str) -> None:
    x = random_panels(shape, 0)[0].requires_grad_()
    y = interpret([x], program)
    known = y.isnan().logical_not()
    (expected,) = torch.autograd.grad(y.where(known, 0).sum(), x)
    actual = torch.ops.commodity.series_program_backward(torch.ones_like(y), x.detach(), *[None] * 7, program, [0])
    torch.testing.assert_close(actual, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("shape", [(0, 3), (4, 0), (0, 4, 3), (1, 1)])
def test_empty_panels(shape: tuple[int, ...]) -> None:
    inputs = [torch.ones(shape), torch.ones(shape)]
    program = "panels 2; input 0; input 1; window_sum %1 1; add %2 %3; return float %4"
    assert_same_bits(run(inputs, program), torch.full(shape, 2.0))
    y, state = step(inputs, None, program)
    assert y.shape == shape
    assert state.shape == (*shape[:-2], 3, shape[-1])
    gradients = torch.ops.commodity.series_program_backward(y, *inputs, *[None] * 6, program, [0, 1])
    assert gradients.shape == (*shape[:-2], 2, *shape[-2:])


def test_integer_results() -> None:
    x = torch.tensor([[5.0], [torch.nan], [3.0]])
    for dtype, missing in ((torch.int8, 0), (torch.int16, 0), (torch.int64, -1)):
        y = run([x], f"panels 1; input 0; return {str(dtype).removeprefix('torch.')} %1")
        assert y.dtype == dtype
        assert y.flatten().tolist() == [5, missing, 3]


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("panels 1; input 0; median %1 3; return float %2", "there is no statement of this name"),
        ("panels 1; input 0; lag %1; return float %2", "wrong number of attributes"),
        ("panels 1; input 0; add %1 %5; return float %2", "operands are earlier statements"),
        ("panels 1; input 0; window_sum %1 0; return float %2", "the number of rows is out of range"),
        ("panels 1; input 0; feedback 0.0; return float %1", "a feedback has no assign"),
        ("panels 1; input 0; return double %1", "the type must be float, int8, int16 or int64"),
        ("panels 1; input 0", "the last statement must be return"),
        ("panels 2; input 0; return float %1", "the program reads 2 inputs; got 1"),
        ("panels 1; input 0; feedback 0.0; assign %2 %1; add %1 %3; return float %4", "operands must have a value"),
    ],
)
def test_a_bad_program_says_what_is_wrong(program: str, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        run([torch.ones(3, 1)], program)


def test_a_state_of_another_program_is_refused() -> None:
    x = torch.ones(3, 1)
    _, state = step([x], None, "panels 1; input 0; lag %1 2; return float %2")
    with pytest.raises(RuntimeError, match="as an earlier step of this program returned it"):
        step([x], state, "panels 1; input 0; lag %1 3; return float %2")
